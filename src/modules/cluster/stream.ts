import type { CopyServer, SharedFilesState } from '../../core/log/shared/shared-log.ts';
import { Failure } from '../../core/values/failure.ts';
import {
  JetStreamError,
  type StreamConfig,
  type StreamInfo,
  callJetStream,
  hasNoResponder,
  jetStreamErrors,
} from './jetstream-api.ts';
import { requestMsMax } from './limits.ts';
import type { ReconnectingNats } from './nats-connection.ts';

/** How long JetStream looks for duplicates, as by default. */
const duplicatesMs = 120_000;

/** The oldest release of nats-server with atomic batches. */
const serverVersion = [2, 12] as const;
/** The field of a stream's metadata that has the id of the log. */
export const idField = 'waymark-log';

/**
 * The subject of a log's entries. It contains the id of the log, so a message for a stream that
 * was removed cannot get into another one of the same name.
 */
export function subjectOf(name: string, id: string): string {
  return `${name}.log.${id}`;
}

/** A stream and the log in it. */
export interface StreamOfLog {
  readonly id: string;
  readonly info: StreamInfo;
}

/** The settings of a new stream. */
interface NewStream {
  readonly name: string;
  /** The id of its log. */
  readonly id: string;
  /** The number of servers with a copy. */
  readonly replicas: number;
  /** How long it has each message; 0 for always. */
  readonly retentionMs: number;
}

/**
 * Makes the stream of a log, or finds the one that has the same id. Rejects with `conflict` if the
 * stream has another log; otherwise as requireStream.
 */
export async function createStream(
  nats: ReconnectingNats,
  { name, id, replicas, retentionMs }: NewStream,
): Promise<StreamOfLog> {
  await requireVersion(nats);
  const config: StreamConfig = {
    ...{ name, subjects: [subjectOf(name, id)], num_replicas: replicas },
    ...{ retention: 'limits', storage: 'file', discard: 'new', compression: 'none' },
    ...{ max_msgs: -1, max_bytes: -1, max_age: nanoseconds(retentionMs), max_msg_size: -1 },
    ...{ deny_delete: true, deny_purge: true, allow_direct: true, allow_atomic: true },
    metadata: { [idField]: id },
  };
  try {
    await callJetStream(nats, `STREAM.CREATE.${name}`, config);
  } catch (error) {
    const exists = error instanceof JetStreamError && error.errCode === jetStreamErrors.nameInUse;
    if (!exists) throw streamFailure(error, name);
  }
  return requireStream(nats, { name, id });
}

/**
 * Resolves to the stream of a log. Rejects with `not_found` if there is none; with `conflict` if it
 * has another log or other settings; with `unavailable` if JetStream does not answer or is too old.
 */
export async function requireStream(
  nats: ReconnectingNats,
  {
    name,
    id,
    timeoutMs = requestMsMax,
  }: { readonly name: string; readonly id: string | undefined; readonly timeoutMs?: number },
): Promise<StreamOfLog> {
  await requireVersion(nats);
  let info: StreamInfo;
  try {
    info = await streamInfo(nats, name, timeoutMs);
  } catch (error) {
    throw streamFailure(error, name);
  }
  const found = info.config.metadata?.[idField];
  if (found === undefined) {
    throw new Failure('conflict', `The stream ${name} has no log of Waymark: choose another name.`);
  }
  if (id !== undefined && found !== id) throw otherLogFailure(name);
  const wrong = wrongSetting(info, subjectOf(name, found));
  if (wrong !== undefined) {
    const message = `The stream ${name} has other settings than Waymark needs: ${wrong}.`;
    throw new Failure('conflict', message);
  }
  return { id: found, info };
}

/**
 * Changes how long a stream has each message; 0 for always. Rejects as requireStream.
 */
export async function setRetention(
  nats: ReconnectingNats,
  { name, retentionMs }: Pick<NewStream, 'name' | 'retentionMs'>,
): Promise<StreamOfLog> {
  const { id, info } = await requireStream(nats, { name, id: undefined });
  try {
    const config = { ...info.config, max_age: nanoseconds(retentionMs) };
    // JetStream demands that; no message of Waymark uses the window.
    const window = Math.min(duplicatesMs, retentionMs === 0 ? duplicatesMs : retentionMs);
    const input = { ...config, duplicate_window: nanoseconds(window) };
    await callJetStream(nats, `STREAM.UPDATE.${name}`, input);
  } catch (error) {
    throw streamFailure(error, name);
  }
  return requireStream(nats, { name, id });
}

/** How long a stream has each message; 0 for always. */
export function retentionMsOf({ config }: StreamInfo): number {
  return Number(config.max_age ?? 0) / 1_000_000;
}

function nanoseconds(ms: number): number {
  return ms * 1_000_000;
}

/** The state of a stream, from its leader. Rejects as callJetStream. */
export function streamInfo(
  nats: ReconnectingNats,
  name: string,
  timeoutMs = requestMsMax,
): Promise<StreamInfo> {
  return callJetStream<StreamInfo>(nats, `STREAM.INFO.${name}`, {}, { timeoutMs });
}

/** The failure for a stream with another log than that of the data folder. */
function otherLogFailure(name: string): Failure {
  return new Failure(
    'conflict',
    `The stream ${name} has the log of another cluster than this data folder: ` +
      'correct `name` or `servers` of [cluster].',
  );
}

async function requireVersion(nats: ReconnectingNats): Promise<void> {
  const { info } = await nats.connection(0).catch(() => ({ info: undefined }));
  const [major = 0, minor = 0] = (info?.version ?? '').split('.').map(Number);
  const [requiredMajor, requiredMinor] = serverVersion;
  if (info === undefined || major > requiredMajor) return;
  if (major === requiredMajor && minor >= requiredMinor) return;
  throw new Failure(
    'unavailable',
    `NATS has version ${info.version}, and a cluster needs ${serverVersion.join('.')} or newer: ` +
      'update the servers.',
  );
}

/** The first setting that would lose or change entries, as `name = value`. */
function wrongSetting({ config }: StreamInfo, subject: string): string | undefined {
  const required = {
    ...{ subjects: [subject], retention: 'limits', storage: 'file', discard: 'new' },
    // With compression, nats-server 2.15 can lose its copy of the stream: docs/design/cluster.md.
    ...{ compression: 'none', max_msgs: -1, max_bytes: -1, max_msg_size: -1 },
    ...{ deny_delete: true, deny_purge: true, allow_direct: true, allow_atomic: true },
  };
  const wrong = Object.entries(required).find(
    ([name, value]) => JSON.stringify(Reflect.get(config, name) ?? null) !== JSON.stringify(value),
  );
  if (wrong === undefined) return undefined;
  const [name, value] = wrong;
  const given: unknown = Reflect.get(config, name);
  return `\`${name}\` is ${JSON.stringify(given ?? null)} instead of ${JSON.stringify(value)}`;
}

/** The failure for an error of JetStream, with what the operator can do. */
export function streamFailure(error: unknown, name: string): Failure {
  if (error instanceof Failure) return error;
  const { noStream, notEnabled, notEnabledForAccount } = jetStreamErrors;
  if (error instanceof JetStreamError) {
    if (error.errCode === noStream) {
      const advice = 'make it on the first node by `waymark cluster init`.';
      return new Failure('not_found', `NATS has no stream ${name}: ${advice}`);
    }
    if (error.errCode === notEnabled || error.errCode === notEnabledForAccount) {
      const advice = 'turn on JetStream on the servers, and for the account of the user.';
      return new Failure('unavailable', `NATS answers "${error.message}": ${advice}`);
    }
  }
  const reason = hasNoResponder(error)
    ? 'it is not turned on, or has no leader at the moment'
    : error instanceof Error
      ? error.message
      : String(error);
  return new Failure('unavailable', `JetStream does not answer: ${reason}.`, {
    ...{ cause: error, retryAfterSeconds: 5 },
  });
}

/** The name of the stream with the files of a cluster, beside that of its log. */
export function filesStreamOf(name: string): string {
  return `${name}-files`;
}

/** The servers with a copy of a stream, the leader first. */
export function serversOf({ cluster }: StreamInfo): readonly CopyServer[] {
  const leader = {
    name: cluster?.leader ?? '-',
    role: 'leader',
    state: 'current',
    lag: 0,
  } as const;
  const replicas = (cluster?.replicas ?? []).map(
    ({ name, current, offline, lag = 0 }): CopyServer => ({
      ...{ name, role: 'replica', lag },
      state: offline === true ? 'offline' : current ? 'current' : 'behind',
    }),
  );
  return [leader, ...replicas];
}

/**
 * Asks once for the state of the stream of files; undefined if there is none yet. Rejects with
 * `unavailable` if a server does not answer within two seconds.
 */
export async function filesState(
  nats: ReconnectingNats,
  name: string,
): Promise<SharedFilesState | undefined> {
  const stream = filesStreamOf(name);
  try {
    const [log, files] = await Promise.all([
      streamInfo(nats, name, requestMsMax),
      streamInfo(nats, stream, requestMsMax),
    ]);
    return stateOf(stream, files, log);
  } catch (error) {
    const { noStream } = jetStreamErrors;
    if (error instanceof JetStreamError && error.errCode === noStream) return undefined;
    throw streamFailure(error, stream);
  }
}

function stateOf(stream: string, files: StreamInfo, log: StreamInfo): SharedFilesState {
  const { messages, bytes } = files.state;
  const [copies, logCopies] = [files.config.num_replicas, log.config.num_replicas];
  const servers = serversOf(files);
  const state = { stream, messages, bytes, copies, log_copies: logCopies, servers };
  const problem = problemOf(state);
  return problem === undefined ? state : { ...state, problem };
}

/** What an operator has to know of the copies, in sentences; undefined for nothing. */
function problemOf({
  stream,
  copies,
  log_copies: logCopies,
  servers,
}: Omit<SharedFilesState, 'problem'>): string | undefined {
  const few =
    `The stream ${stream} has ${copies} ${copies === 1 ? 'copy' : 'copies'} of each file, and ` +
    `that of the log ${logCopies}: fewer servers that fail lose files than entries. Give it as ` +
    `many: nats stream edit ${stream} --replicas ${logCopies}`;
  const away = servers.filter(({ state }) => state !== 'current').map(shortcoming);
  const sentences = [
    ...(copies < logCopies ? [few] : []),
    ...(away.length > 0 ? [`Not all servers have all files: ${away.join(', ')}.`] : []),
  ];
  return sentences.length === 0 ? undefined : sentences.join(' ');
}

/** What keeps a server from having everything; `current` also means that the leader hears of it. */
function shortcoming({ name, state, lag }: CopyServer): string {
  if (state === 'offline') return `${name} is offline`;
  return lag > 0 ? `${name} is behind by ${lag} messages` : `the leader hears nothing of ${name}`;
}
