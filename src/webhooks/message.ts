import { batchId } from '../model/event.ts';
import type { AttemptRecord } from '../store/deliveries.ts';
import { batchBody, eachBody, type EventText } from './body.ts';

/** A message that is to be sent. */
export interface Message {
  /** The place of its first event in the hook's count. */
  readonly n: number;
  readonly logSeqs: readonly number[];
  /** Its newest attempt, or how it was made; undefined for an event out of the queue. */
  readonly before: AttemptRecord | undefined;
  /** When it was due; undefined for an event out of the queue. */
  readonly dueMs: number | undefined;
}

/** What is the same at every attempt at a message. */
export interface Written {
  readonly id: string;
  readonly body: Buffer;
  /** Its first event. */
  readonly event: EventText;
}

/** Writes a message as it is sent (contract §7): made of the log alone, so always the same. */
export function writeMessage(
  { n, logSeqs, before }: Message,
  hookId: string,
  eventText: (logSeq: number) => EventText,
): Written {
  const [event, ...others] = logSeqs.map(eventText);
  if (event === undefined) throw new Error(`message ${n} of ${hookId} has no event`);
  if (before?.batch !== true) return { id: event.id, body: eachBody(event, n), event };
  const id = batchId(hookId, n, n + others.length);
  return { id, body: batchBody([event, ...others], n), event };
}

/** The halves of a message that is too large for its receiver; none where it cannot be split. */
export function halvesOf({ n, logSeqs, before }: Message): readonly [] | readonly [Half, Half] {
  if (before?.batch !== true || logSeqs.length < 2) return [];
  const middle = Math.ceil(logSeqs.length / 2);
  return [
    { n, logSeqs: logSeqs.slice(0, middle) },
    { n: n + middle, logSeqs: logSeqs.slice(middle) },
  ];
}

type Half = Pick<Message, 'n' | 'logSeqs'>;
