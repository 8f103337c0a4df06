import { setTimeout as delay } from 'node:timers/promises';
import type { SharedContent, SharedFile, SharedFiles } from '../../core/log/shared/shared-log.ts';
import { Failure } from '../../core/values/failure.ts';
import {
  JetStreamError,
  type StreamInfo,
  answerOf,
  callJetStream,
  jetStreamErrors,
} from './jetstream-api.ts';
import { appendAgainMs, appendMsMax } from './limits.ts';
import type { ReconnectingNats } from './nats-connection.ts';
import { filesState, filesStreamOf, idField, streamFailure, streamInfo } from './stream.ts';

/**
 * The bytes of a part of a file that nodes share. It is a part of the layout, because the subject
 * of a part has its number; the servers have to take messages of this size (`max_payload`).
 */
const filePartBytes = 512 * 1024;

/** The parts of a file that are stored or fetched at the same time. */
const filePartsAtOnce = 4;

/** How long a server may take to store a part. */
const filePartRequestMs = 5_000;

interface FilesParts {
  readonly nats: ReconnectingNats;
  /** The name of the stream of the log. */
  readonly name: string;
  /** The id of its log. */
  readonly id: string;
}

/** A message, as the leader of a stream answers. */
interface StoredMessage {
  readonly message: { readonly seq: number; readonly time: string; readonly data?: string };
}

/**
 * The files of a cluster, in a stream beside that of its log. A file is a message a part, and one
 * at the end that says that it is whole, with its bytes. A subject has one message, and its content
 * follows from the hash in it, so that nodes can store the same file at the same time.
 */
export function createStreamFiles(parts: FilesParts): SharedFiles {
  const { nats, name, id } = parts;
  const stream = filesStreamOf(name);
  const subject = (sha256: string, part: string): string => `${name}.file.${id}.${sha256}.${part}`;
  let isMade = false;

  /** Makes the stream, with as many copies as that of the log, unless a node has made it. */
  const make = async (): Promise<void> => {
    if (isMade) return;
    const { config } = await streamInfo(nats, name);
    await createFilesStream(nats, { ...parts, stream, replicas: config.num_replicas });
    isMade = true;
  };

  const store = (at: string, data: Uint8Array): Promise<void> =>
    insist(nats, stream, async () => {
      const answer = answerOf(await nats.request(at, { data, timeoutMs: filePartRequestMs }));
      if (answer.stream !== stream) throw new Error('JetStream has stored nothing.');
    });

  const last = (at: string): Promise<StoredMessage['message'] | undefined> =>
    insist(nats, stream, () => lastMessage(nats, stream, at));

  const part = async (sha256: string, at: number): Promise<Uint8Array> => {
    const found = await insist(nats, stream, async () => {
      const one = subject(sha256, String(at));
      return (await directMessage(nats, stream, one)) ?? lastContent(nats, stream, one);
    });
    if (found !== undefined) return found;
    throw new Failure('unavailable', 'The cluster has removed this file meanwhile.');
  };

  return {
    async put(sha256, bytes, read) {
      await insist(nats, stream, make);
      const count = partsOf(bytes);
      await inGroups(count, async (at) => {
        const first = at * filePartBytes;
        const length = Math.min(filePartBytes, bytes - first);
        await store(subject(sha256, String(at)), await read(first, length));
      });
      await store(subject(sha256, whole), Buffer.from(String(bytes)));
    },
    async get(sha256, from, signal): Promise<SharedContent | undefined> {
      const end = await last(subject(sha256, whole));
      if (end === undefined) return undefined;
      const count = partsOf(Number(Buffer.from(end.data ?? '', 'base64').toString()));
      const begin = Math.min(Math.floor(from / filePartBytes), count - 1);
      const load = (at: number): Promise<Uint8Array> => part(sha256, at);
      return { first: begin * filePartBytes, chunks: chunksOf(begin, count, load, signal) };
    },
    async list() {
      const names = (one: string): Promise<readonly string[]> =>
        insist(nats, stream, () => filesWith(nats, stream, subject('*', one)));
      const [begun, ended] = [await names('0'), new Set(await names(whole))];
      return begun.map((sha256): SharedFile => ({ sha256, isWhole: ended.has(sha256) }));
    },
    state: () => filesState(nats, name),
    async remove(sha256, beforeMs) {
      const found = await last(subject(sha256, whole));
      const newest = found ?? (await last(subject(sha256, '0')));
      if (newest === undefined || Date.parse(newest.time) >= beforeMs) return;
      // Only what was there: a node may store the file again at this moment.
      const input = { filter: subject(sha256, '*'), seq: newest.seq + 1 };
      await insist(nats, stream, () => callJetStream(nats, `STREAM.PURGE.${stream}`, input));
    },
  };
}

/** The last part of the subject of the message that ends a file. */
const whole = 'whole';

/** The number of messages with content: an empty file has one, too. */
function partsOf(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / filePartBytes));
}

/** Calls a function for each number below a count, some at the same time. */
async function inGroups(count: number, act: (at: number) => Promise<void>): Promise<void> {
  for (let from = 0; from < count; from += filePartsAtOnce) {
    const length = Math.min(filePartsAtOnce, count - from);
    await Promise.all(Array.from({ length }, (_, at) => act(from + at)));
  }
}

/** The parts of a file in their order, some loaded at the same time. */
async function* chunksOf(
  begin: number,
  count: number,
  load: (at: number) => Promise<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  for (let from = begin; from < count; from += filePartsAtOnce) {
    signal.throwIfAborted();
    const length = Math.min(filePartsAtOnce, count - from);
    yield* await Promise.all(Array.from({ length }, (_, at) => load(from + at)));
  }
}

async function createFilesStream(
  nats: ReconnectingNats,
  { name, id, stream, replicas }: FilesParts & { stream: string; replicas: number },
): Promise<void> {
  const config = {
    ...{ name: stream, subjects: [`${name}.file.${id}.>`], num_replicas: replicas },
    ...{ retention: 'limits', storage: 'file', discard: 'new', compression: 'none' },
    ...{ max_msgs: -1, max_bytes: -1, max_age: 0, max_msg_size: -1, max_msgs_per_subject: 1 },
    ...{ allow_direct: true, metadata: { [idField]: id } },
  };
  try {
    await callJetStream(nats, `STREAM.CREATE.${stream}`, config);
  } catch (error) {
    const exists = error instanceof JetStreamError && error.errCode === jetStreamErrors.nameInUse;
    if (!exists) throw error;
    const { config: found } = await streamInfo(nats, stream);
    if (found.metadata?.[idField] === id) return;
    throw new Failure(
      'conflict',
      `The stream ${stream} of NATS has the files of another cluster: remove it.`,
    );
  }
}

/**
 * Repeats a call while the servers elect a leader. Rejects with the failure that tells the operator
 * what is wrong.
 */
async function insist<T>(
  nats: ReconnectingNats,
  stream: string,
  call: () => Promise<T>,
): Promise<T> {
  const started = performance.now();
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const isFinal = error instanceof Failure && error.code !== 'unavailable';
      const left = appendMsMax - (performance.now() - started);
      if (isFinal || left <= 0) throw streamFailure(error, stream);
      await delay(appendAgainMs);
      await nats.connection(left).catch(() => undefined);
    }
  }
}

/** The newest message of a subject, from the leader; undefined if there is none. */
async function lastMessage(
  nats: ReconnectingNats,
  stream: string,
  subject: string,
): Promise<StoredMessage['message'] | undefined> {
  try {
    const call = `STREAM.MSG.GET.${stream}`;
    return (await callJetStream<StoredMessage>(nats, call, { last_by_subj: subject })).message;
  } catch (error) {
    const code = error instanceof JetStreamError ? error.errCode : undefined;
    const { noMessage, noStream } = jetStreamErrors;
    if (code === noMessage || code === noStream) return undefined;
    throw error;
  }
}

async function lastContent(
  ...given: Parameters<typeof lastMessage>
): Promise<Uint8Array | undefined> {
  const found = await lastMessage(...given);
  return found && Buffer.from(found.data ?? '', 'base64');
}

/** The newest message of a subject, from any server; undefined if that one does not have it. */
async function directMessage(
  nats: ReconnectingNats,
  stream: string,
  subject: string,
): Promise<Uint8Array | undefined> {
  const answer = await nats.request(`$JS.API.DIRECT.GET.${stream}.${subject}`);
  const status = answer.headers?.code ?? 0;
  if (status === 404) return undefined;
  if (status !== 0) throw new Error(`the server answers with ${status}`);
  return answer.data;
}

/** The hashes of the subjects that match a pattern. */
async function filesWith(
  nats: ReconnectingNats,
  stream: string,
  pattern: string,
): Promise<readonly string[]> {
  const found: string[] = [];
  for (;;) {
    const input = { subjects_filter: pattern, offset: found.length };
    let info: SubjectsInfo;
    try {
      info = await callJetStream<SubjectsInfo>(nats, `STREAM.INFO.${stream}`, input);
    } catch (error) {
      const { noStream } = jetStreamErrors;
      if (error instanceof JetStreamError && error.errCode === noStream) return [];
      throw error;
    }
    const subjects = Object.keys(info.state.subjects ?? {});
    found.push(...subjects.map((subject) => subject.split('.').at(-2) ?? ''));
    if (subjects.length === 0 || found.length >= (info.total ?? 0)) return found;
  }
}

/** The answer of JetStream to a question for the subjects of a stream, a page of them. */
interface SubjectsInfo extends StreamInfo {
  readonly total?: number;
  readonly state: StreamInfo['state'] & { readonly subjects?: Readonly<Record<string, number>> };
}
