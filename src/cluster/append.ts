import { setTimeout as delay } from 'node:timers/promises';
import { headers, type Msg, type MsgHdrs } from '@nats-io/transport-node';
import { Failure } from '../model/failure.ts';
import { answerOf, JetStreamError, jetStreamErrors } from './jetstream-api.ts';
import {
  appendAgainMs,
  appendMsMax,
  batchWindow,
  entryBytesMax,
  entryMessagesMax,
  messageBytesMax,
  messageDataShare,
  requestMsMax,
} from './limits.ts';
import { entryHeaders, partOf } from './message.ts';
import type { ReconnectingNats } from './nats-connection.ts';
import { subjectOf } from './stream.ts';

/** The dependencies of an append. */
interface AppendParts {
  readonly nats: ReconnectingNats;
  /** The name of the stream. */
  readonly name: string;
  /** The id of its log. */
  readonly id: string;
  readonly newId: () => string;
}

/** An entry as messages. */
interface Draft {
  /** The id of the append, the same each time that it is repeated. */
  readonly id: string;
  readonly after: number;
  readonly parts: readonly Uint8Array[];
}

/** What one attempt came to: `unknown` has the reason why it is not known. */
type Outcome =
  | { readonly kind: 'stored' }
  | { readonly kind: 'taken' }
  | { readonly kind: 'unknown'; readonly reason: unknown };

/** SharedLog.append: see there. */
export async function appendEntry(
  parts: AppendParts,
  data: Uint8Array,
  after: number,
): Promise<number | undefined> {
  const started = performance.now();
  const left = (): number => Math.max(0, appendMsMax - (performance.now() - started));
  const draft = await draftOf(parts, data, after);
  for (let attempt = 0; ; attempt += 1) {
    const outcome = await attemptAppend(parts, draft, attempt).catch(
      (reason: unknown): Outcome => ({ kind: 'unknown', reason }),
    );
    if (outcome.kind === 'stored') return after + draft.parts.length;
    if (outcome.kind === 'taken') return undefined;
    const { reason } = outcome;
    if (reason instanceof Failure && reason.code === 'forbidden') throw reason;
    if (left() === 0) throw unknownFailure(reason);
    await delay(appendAgainMs);
    // Without a connection, a repetition would fail at once.
    await parts.nats.connection(left()).catch(() => undefined);
  }
}

/** Divides an entry into messages that the server takes. */
async function draftOf(
  { nats, newId }: AppendParts,
  data: Uint8Array,
  after: number,
): Promise<Draft> {
  const { info } = await nats.connection(appendMsMax);
  const allowed = Math.min(info?.max_payload ?? messageBytesMax, messageBytesMax);
  const bytes = Math.floor(allowed * messageDataShare);
  const count = Math.max(1, Math.ceil(data.length / bytes));
  if (count > entryMessagesMax || data.length > entryBytesMax) {
    const max = Math.min(entryBytesMax, entryMessagesMax * bytes);
    const given = `this one has ${data.length}`;
    throw new Failure(
      'too_large',
      `A transaction in a cluster has at most ${max} bytes, and ${given}: send it in parts.`,
    );
  }
  const parts = Array.from({ length: count }, (_, at) =>
    data.subarray(at * bytes, (at + 1) * bytes),
  );
  return { id: newId(), after, parts };
}

async function attemptAppend(parts: AppendParts, draft: Draft, attempt: number): Promise<Outcome> {
  let answer: Msg;
  try {
    answer = await send(parts, draft, attempt);
    const { seq, duplicate } = answerOf(answer);
    const isStored = seq === draft.after + draft.parts.length && duplicate !== true;
    if (isStored) return { kind: 'stored' };
    return { kind: 'unknown', reason: new Error('JetStream has answered with another sequence') };
  } catch (reason) {
    const code = reason instanceof JetStreamError ? reason.errCode : undefined;
    const { wrongLastSequence, wrongLastSequenceUnknown, tooLarge } = jetStreamErrors;
    if (code === tooLarge) {
      const message = 'The NATS servers refuse the size of the change (`max_payload`).';
      throw new Failure('too_large', message, { cause: reason });
    }
    if (code !== wrongLastSequence && code !== wrongLastSequenceUnknown) {
      return { kind: 'unknown', reason };
    }
    const first = await appendIdAt(parts, draft.after + 1);
    // The message may be on its way to the replicas: it can still be this one.
    if (first === undefined) return { kind: 'unknown', reason };
    return { kind: first === draft.id ? 'stored' : 'taken' };
  }
}

/** Sends the messages of an entry; resolves to the answer to the last one. */
async function send(parts: AppendParts, draft: Draft, attempt: number): Promise<Msg> {
  const { nats, name, id } = parts;
  const subject = subjectOf(name, id);
  const connection = await nats.connection(requestMsMax);
  const last = draft.parts.length - 1;
  for (const [at, data] of draft.parts.entries()) {
    const fields = headersOf(parts, draft, { at, attempt });
    if (at === last) return nats.request(subject, { data, headers: fields });
    // The server acknowledges these messages only, so that its queue stays short.
    if (at % batchWindow === batchWindow - 1) {
      const { data: refused } = await nats.request(subject, { data, headers: fields });
      if (refused.length > 0) answerOf({ data: refused } as Msg);
    } else connection.publish(subject, data, { headers: fields });
  }
  throw new Error('an entry has no message');
}

function headersOf(
  { name }: AppendParts,
  { id, after, parts }: Draft,
  { at, attempt }: { readonly at: number; readonly attempt: number },
): MsgHdrs {
  const fields = headers();
  fields.set('Nats-Expected-Stream', name);
  // JetStream allows it in the first message of a batch only, and checks it when it commits.
  if (at === 0) fields.set('Nats-Expected-Last-Sequence', String(after));
  for (const [field, value] of entryHeaders({ id, after, at, count: parts.length })) {
    fields.set(field, value);
  }
  if (parts.length === 1) return fields;
  // What is left of an earlier attempt is another batch, which is never committed.
  fields.set('Nats-Batch-Id', `${id}-${attempt}`);
  fields.set('Nats-Batch-Sequence', String(at + 1));
  if (at === parts.length - 1) fields.set('Nats-Batch-Commit', '1');
  return fields;
}

/** The id of the append that has stored a message; undefined if a replica has no such message. */
async function appendIdAt(
  { nats, name }: AppendParts,
  sequence: number,
): Promise<string | undefined> {
  const data = JSON.stringify({ seq: sequence });
  const message = await nats.request(`$JS.API.DIRECT.GET.${name}`, { data });
  const status = message.headers?.code ?? 0;
  if (status === 404) return undefined;
  if (status !== 0) throw new Error(`JetStream has answered with status ${status}`);
  return partOf(message)?.id ?? '';
}

function unknownFailure(cause: unknown): Failure {
  return new Failure(
    'unavailable',
    'The cluster does not answer, so it is not known whether it has stored the change. Send it ' +
      'again with the same vk.',
    { cause, retryAfterSeconds: 5 },
  );
}
