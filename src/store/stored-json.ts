import { Failure } from '../model/failure.ts';

/** Parses a value of the store. Throws `unavailable` for one that was damaged on the disk. */
export function storedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Failure(
      'unavailable',
      'Stored data is damaged, and cannot be read: `waymark check --data` says where.',
      { cause },
    );
  }
}
