import type { Databases } from './databases.ts';
import type { AttemptRecord, QueueKey } from './deliveries.ts';
import { eventKey } from './delivery-keys.ts';
import { storedJson } from './stored-json.ts';

/** The newest attempt of a message. */
export function latestAttempt(
  { attempt }: Databases,
  queue: QueueKey,
  n: number,
): AttemptRecord | undefined {
  const range = { start: eventKey(queue, n + 1), end: eventKey(queue, n), reverse: true, limit: 1 };
  for (const { value } of attempt.getRange(range)) return storedJson(value) as AttemptRecord;
  return undefined;
}
