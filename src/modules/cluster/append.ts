import { setTimeout as delay } from 'node:timers/promises';
import { type Msg, type MsgHdrs, headers } from '@nats-io/transport-node';
import { Failure } from '../../core/values/failure.ts';
import { MIB } from '../../core/values/units.ts';
import { JetStreamError, answerOf, callJetStream, jetStreamErrors } from './jetstream-api.ts';
import { appendAgainMs, appendMsMax, requestMsMax } from './limits.ts';
import { appendIdOf, entryHeaders } from './message.ts';
import { type ReconnectingNats, publishWakeUp } from './nats-connection.ts';
import { subjectOf } from './stream.ts';

/** How long one attempt to append waits for its answer … */
const appendRequestMs = 1_000;

/** … and 1 ms longer for each of these bytes of the entry. */
const appendBytesPerMs = 10_000;

/** The bytes of one message, if the server allows more (`max_payload`, by default 1 MiB) … */
const messageBytesMax = MIB;

/** … and the part of it that the data may be; header fields take the rest. */
const messageDataShare = 0.75;

/** The messages of one entry, as JetStream allows in an atomic batch … */
const entryMessagesMax = 1_000;

/** … and its bytes, which the servers have in memory several times. */
const entryBytesMax = 256 * MIB;

/** Of the messages of a batch, each one after this many waits for an answer. */
const batchWindow = 16;

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
  /** The id of the append, the same for each repetition. */
  readonly id: string;
  readonly after: number;
  readonly parts: readonly Uint8Array[];
}

/** A message of the stream, as its leader answers; header fields in base64. */
interface StoredMessage {
  readonly message: { readonly hdrs?: string };
}

/** The outcome of one attempt: `unknown` has the reason. */
type Outcome =
  | { readonly kind: 'stored' }
  | { readonly kind: 'taken' }
  | { readonly kind: 'unknown'; readonly reason: unknown };

const { noMessage, tooLarge, wrongLastSequence, wrongLastSequenceUnknown } = jetStreamErrors;

/** @inheritdoc SharedLog.append. */
export async function appendEntry(
  parts: AppendParts,
  data: Uint8Array,
  after: number,
): Promise<number | undefined> {
  const started = performance.now();
  const left = (): number => Math.max(0, Math.ceil(appendMsMax - (performance.now() - started)));
  const draft = await draftOf(parts, data, after);
  for (let attempt = 0; ; attempt += 1) {
    const outcome = await attemptAppend(parts, draft, attempt).catch(
      (reason: unknown): Outcome => ({ kind: 'unknown', reason }),
    );
    if (outcome.kind === 'stored') {
      const position = after + draft.parts.length;
      await wakeOthers(parts, position);
      return position;
    }
    if (outcome.kind === 'taken') return undefined;
    const { reason } = outcome;
    if (reason instanceof Failure && reason.code === 'forbidden') throw reason;
    if (left() === 0) throw unknownFailure(reason);
    await delay(appendAgainMs);
    // Without a connection, a repetition would fail at once.
    await parts.nats.connection(left()).catch(() => undefined);
  }
}

async function wakeOthers(parts: AppendParts, position: number): Promise<void> {
  // Without a connection, the others notice it soon anyway.
  const connection = await parts.nats.connection(0).catch(() => undefined);
  if (connection !== undefined) publishWakeUp(connection, parts, position);
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
  const bytes = draft.parts.reduce((sum, { length }) => sum + length, 0);
  const timeoutMs = appendRequestMs + Math.ceil(bytes / appendBytesPerMs);
  for (const [at, data] of draft.parts.entries()) {
    const fields = headersOf(parts, draft, { at, attempt });
    if (at === last) return nats.request(subject, { data, headers: fields, timeoutMs });
    // The server acknowledges these messages only, so that its queue stays short.
    if (at % batchWindow === batchWindow - 1) {
      const { data: refused } = await nats.request(subject, { data, headers: fields, timeoutMs });
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
  // The messages of an earlier attempt are another batch, which is never committed.
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
  try {
    // The leader answers: of the replicas, one that has just ended could get the request.
    const input = { seq: sequence };
    const { message } = await callJetStream<StoredMessage>(nats, `STREAM.MSG.GET.${name}`, input);
    return appendIdOf(Buffer.from(message.hdrs ?? '', 'base64').toString()) ?? '';
  } catch (error) {
    if (error instanceof JetStreamError && error.errCode === noMessage) return undefined;
    throw error;
  }
}

function unknownFailure(cause: unknown): Failure {
  return new Failure(
    'unavailable',
    'The cluster does not answer, so it is not known whether it has stored the change. Send it ' +
      'again with the same vk.',
    { cause, retryAfterSeconds: 5 },
  );
}
