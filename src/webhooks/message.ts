import { batchId } from '../model/event.ts';
import type { AttemptRecord, Deliveries } from '../store/deliveries/deliveries.ts';
import { batchBody, eachBody, type EventText } from './body.ts';
import { eventTextBytesMax, hookBatchBytesMax } from './limits.ts';

/** A message to send. */
export interface HookMessage {
  /** The place of its first event in the hook's count. */
  readonly n: number;
  readonly logSeqs: readonly number[];
  /** Its newest attempt, or its creation as a batch; undefined for an event from the queue. */
  readonly before: AttemptRecord | undefined;
  /** The time at which it was due; undefined for an event from the queue. */
  readonly dueMs: number | undefined;
}

/** The part of a message that is the same at every attempt. */
interface Written {
  readonly id: string;
  readonly body: Buffer;
  /** Its first event. */
  readonly event: EventText;
}

/**
 * Serialises a message (docs/design/webhooks.md#deliveries). It depends on the log alone, so it is
 * the same at every attempt. A long message is written in several turns of the event loop.
 */
export async function writeMessage(
  { n, logSeqs, before }: HookMessage,
  hookId: string,
  eventText: (logSeq: number) => EventText,
): Promise<Written> {
  const [first] = logSeqs;
  if (first === undefined) throw new Error(`message ${n} of ${hookId} has no event`);
  const event = eventText(first);
  if (before?.batch !== true) return { id: event.id, body: eachBody(event, n), event };
  const id = batchId(hookId, n, n + logSeqs.length - 1);
  return { id, body: await batchBody(logSeqs, n, eventText), event };
}

/** An upper estimate of the length of the body of a message with these events, in bytes. */
export function bodyBytesAtMost(
  logSeqs: readonly number[],
  { eventBytes }: Pick<Deliveries, 'eventBytes'>,
): number {
  let bytes = 0;
  for (const logSeq of logSeqs) {
    bytes += Math.min(eventBytes(logSeq), eventTextBytesMax);
    if (bytes > hookBatchBytesMax) return hookBatchBytesMax;
  }
  return bytes;
}

/** The halves of a batch that is too large for its receiver; empty if it cannot be split. */
export function halvesOf({ n, logSeqs, before }: HookMessage): readonly [] | readonly [Half, Half] {
  if (before?.batch !== true || logSeqs.length < 2) return [];
  const middle = Math.ceil(logSeqs.length / 2);
  return [
    { n, logSeqs: logSeqs.slice(0, middle) },
    { n: n + middle, logSeqs: logSeqs.slice(middle) },
  ];
}

type Half = Pick<HookMessage, 'n' | 'logSeqs'>;
