import { Failure } from '../model/failure.ts';

/** Parses a value of the store. Throws `unavailable` for a value that is damaged on the disk. */
export function storedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Failure(
      'unavailable',
      'Stored data is damaged and cannot be read. Run `waymark check --data` to find the place.',
      { cause },
    );
  }
}
