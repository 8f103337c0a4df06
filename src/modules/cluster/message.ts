import { setTimeout as delay } from 'node:timers/promises';
import { type Msg, type NatsConnection, createInbox } from '@nats-io/transport-node';
import { MIB } from '../../core/values/units.ts';

/** The messages, and their bytes, that a server sends for one request. */
const fetchMessagesMax = 1_000;
const fetchBytesMax = 8 * MIB;

/** The pauses after which a request for messages is repeated, if no answer begins. */
const fetchHedgeMs = [30, 60, 90, 120, 150, 180, 210] as const;

/** Which part of which entry a message of the stream is. */
interface Part {
  /** The id of the append that has stored it. */
  readonly id: string;
  /** The position of the entry before this one. */
  readonly after: number;
  /** From 0. */
  readonly at: number;
  /** The number of messages of the entry. */
  readonly count: number;
}

/** The header fields of a message for a part of an entry. */
export function entryHeaders({
  id,
  after,
  at,
  count,
}: Part): readonly (readonly [string, string])[] {
  return [
    ['Waymark-Append', id],
    ['Waymark-After', String(after)],
    ['Waymark-Part', `${at + 1}/${count}`],
  ];
}

/** The id of the append in the text of header fields (RFC 9112 §5); undefined if it has none. */
export function appendIdOf(fields: string): string | undefined {
  const name = 'Waymark-Append:';
  const line = fields.split('\r\n').find((one) => one.startsWith(name));
  return line?.slice(name.length).trim();
}

/** Reads those fields; undefined for a message that Waymark has not written. */
export function partOf({ headers }: Pick<Msg, 'headers'>): Part | undefined {
  const id = headers?.get('Waymark-Append') ?? '';
  const after = headers?.get('Waymark-After') ?? '';
  const [at = '', count = ''] = (headers?.get('Waymark-Part') ?? '').split('/');
  const isWhole = [after, at, count].every((number) => /^\d{1,15}$/.test(number));
  if (id === '' || !isWhole) return undefined;
  return { id, after: Number(after), at: Number(at) - 1, count: Number(count) };
}

/** The sequence of a message in the stream, from its metadata. */
function sequenceOf({ headers }: Pick<Msg, 'headers'>): number {
  return Number(headers?.get('Nats-Sequence'));
}

/** The messages to fetch. */
interface FetchRequest {
  /** The name of the stream. */
  readonly name: string;
  readonly sequence: number;
  /** How long the answer may pause. */
  readonly timeoutMs: number;
}

/**
 * Fetches messages of a stream from a sequence, as many as there are, up to a limit: none if there
 * is none yet. Any replica may get the request, also one that has stopped without the others
 * having noticed, so the request is repeated when no answer begins. Rejects if the signal aborts,
 * if no replica answers, and if a message is missing.
 */
export async function fetchMessages(
  connection: NatsConnection,
  request: FetchRequest,
  signal: AbortSignal,
): Promise<readonly Msg[]> {
  const done = new AbortController();
  const attempts: Promise<readonly Msg[]>[] = [];
  const stop = AbortSignal.any([signal, done.signal]);
  try {
    for (const pauseMs of fetchHedgeMs) {
      const { began, messages } = attempt(connection, request, stop);
      attempts.push(messages);
      const waiting = new AbortController();
      const pause = delay(pauseMs, 'paused', { signal: waiting.signal }).catch(() => 'paused');
      const first = await Promise.race([began, pause]);
      waiting.abort();
      if (first === 'began') break;
    }
    return await Promise.any(attempts);
  } catch (error) {
    throw error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  } finally {
    done.abort();
  }
}

/** One request; `began` resolves when its answer begins, or it has failed. */
function attempt(
  connection: NatsConnection,
  { name, sequence, timeoutMs }: FetchRequest,
  signal: AbortSignal,
): { readonly began: Promise<'began'>; readonly messages: Promise<readonly Msg[]> } {
  const { promise: began, resolve: begin } = Promise.withResolvers<'began'>();
  const { promise, resolve, reject } = Promise.withResolvers<readonly Msg[]>();
  const messages: Msg[] = [];
  const inbox = createInbox();
  const aborted = (): void => {
    reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
    begin('began');
  };
  const subscription = connection.subscribe(inbox, {
    callback: (error, message) => {
      begin('began');
      if (error !== null) {
        reject(error);
        return;
      }
      const status = message.headers?.code ?? 0;
      if (status === 0) {
        if (sequenceOf(message) !== sequence + messages.length) {
          reject(new Error(`message ${sequence + messages.length} is missing`));
        }
        messages.push(message);
        timer.refresh();
        // 204 ends the messages; 404 means that there is none.
      } else if (status === 204 || status === 404) resolve(messages);
      else reject(new Error(`the server answers with ${status} ${message.headers?.description}`));
    },
  });
  const request = { seq: sequence, batch: fetchMessagesMax, max_bytes: fetchBytesMax };
  const options = { reply: inbox };
  connection.publish(`$JS.API.DIRECT.GET.${name}`, JSON.stringify(request), options);
  const timer = setTimeout(() => {
    reject(new Error('the server is silent'));
  }, timeoutMs);
  signal.addEventListener('abort', aborted);
  if (signal.aborted) aborted();
  const ended = promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener('abort', aborted);
    if (!connection.isClosed()) subscription.unsubscribe();
  });
  // Another attempt may have succeeded meanwhile.
  ended.catch(() => undefined);
  return { began, messages: ended };
}
