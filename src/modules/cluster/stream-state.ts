import type { CopyServer, SharedFilesState } from '../../core/log/shared/shared-files.ts';
import { JetStreamError, jetStreamErrors, type StreamInfo } from './jetstream-api.ts';
import { requestMsMax } from './limits.ts';
import type { ReconnectingNats } from './nats-connection.ts';
import { streamFailure, streamInfo } from './stream.ts';

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
