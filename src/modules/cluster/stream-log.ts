import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../../core/config/config.ts';
import type { SharedLog } from '../../core/log/shared/shared-log.ts';
import type { Log } from '../../core/report/log.ts';
import { Failure } from '../../core/values/failure.ts';
import { appendEntry } from './append.ts';
import type { StreamInfo } from './jetstream-api.ts';
import { appendMsMax, connectMsMax, readAgainMs, requestMsMax } from './limits.ts';
import { ReconnectingNats } from './nats-connection.ts';
import { readEntries } from './reader.ts';
import { createStreamFiles } from './stream-files.ts';
import { requireStream, streamFailure, streamInfo } from './stream.ts';

/** How long a node tries to get the end of the stream: also while the servers elect a leader. */
const endMsMax = appendMsMax;

/** A leader without a sign of most replicas for this long may no longer be the leader. */
const replicaContactMsMax = 3_000;

interface StreamLogParts {
  readonly settings: Config['cluster'];
  /**
   * The id of the log that the data folder has a part of. With it, a node starts also while the
   * servers cannot be reached.
   */
  readonly id: string | undefined;
  readonly log: Log;
  readonly newId: () => string;
}

/**
 * Opens the log of a cluster: a stream of NATS JetStream (docs/design/cluster.md). Rejects with
 * `not_found` if the stream does not exist; with `conflict` if it has another log or wrong
 * settings; with `forbidden` if the servers refuse the user; with `unavailable` if they cannot be
 * reached, and no id is given.
 */
export async function openStreamLog(parts: StreamLogParts): Promise<SharedLog> {
  const { settings, id: known, log, newId } = parts;
  const nats = new ReconnectingNats(settings, { log });
  const { name } = settings;
  try {
    const id = await findLog(nats, {
      name,
      known,
      triesMs: settings.servers.length * connectMsMax,
    });
    const end = (): Promise<number> => endOf(nats, name);
    const broadcasts = new Broadcasts(nats, { name, id });
    let interruption: string | undefined;
    return {
      id,
      append: (data, after) => appendEntry({ nats, name, id, newId }, data, after),
      entries: (after, signal) => {
        const report = (reason: unknown): void => {
          interruption = reason === undefined ? undefined : streamFailure(reason, name).message;
          if (reason !== undefined) log.debug({ err: reason }, 'Cannot read the shared log.');
        };
        return readEntries({ nats, name, id, end, report }, after, signal);
      },
      end,
      state: () => {
        const problem = nats.problem?.message;
        return { isConnected: problem === undefined, problem: problem ?? interruption };
      },
      broadcast: (data) => broadcasts.send(data),
      onBroadcast: (listener) => broadcasts.listen(listener),
      files: createStreamFiles({ nats, name, id }),
      async close() {
        await Promise.all([broadcasts.stop(), nats.close()]);
      },
    };
  } catch (error) {
    await nats.close();
    throw error;
  }
}

/** Resolves to the id of the log in the stream. */
async function findLog(
  nats: ReconnectingNats,
  {
    name,
    known,
    triesMs,
  }: { readonly name: string; readonly known: string | undefined; readonly triesMs: number },
): Promise<string> {
  try {
    await nats.connection(triesMs, { isTried: true });
    const { id } = await requireStream(nats, { name, id: known });
    return id;
  } catch (error) {
    const isAway = error instanceof Failure && error.code === 'unavailable';
    if (known !== undefined && isAway) return known;
    throw error;
  }
}

/** @inheritdoc SharedLog.end. */
async function endOf(nats: ReconnectingNats, name: string): Promise<number> {
  const started = performance.now();
  for (;;) {
    let reason: unknown;
    try {
      const info = await streamInfo(nats, name);
      if (isLeading(info)) return info.state.last_seq;
      reason = new Error('the leader of the stream has no contact with most replicas');
    } catch (error) {
      reason = error;
    }
    if (performance.now() - started > endMsMax) throw streamFailure(reason, name);
    await delay(readAgainMs);
  }
}

/**
 * Whether most replicas have been in contact with the server that says it is the leader: one that
 * was stopped, or is cut off from the others, may have been replaced without knowing.
 */
function isLeading({ config, cluster }: StreamInfo): boolean {
  const others = (cluster?.replicas ?? []).filter(
    ({ active, offline }) => offline !== true && active / 1_000_000 < replicaContactMsMax,
  );
  return 2 * (others.length + 1) > config.num_replicas;
}

/** Messages that nodes send each other outside of the stream; nothing stores them. */
export class Broadcasts {
  readonly #nats: ReconnectingNats;
  readonly #subject: string;
  readonly #listeners = new Set<(data: Uint8Array) => void>();
  readonly #stopped = new AbortController();
  #running: Promise<void> | undefined;

  /** `name` is that of the stream, `id` that of its log. */
  constructor(
    nats: ReconnectingNats,
    { name, id }: { readonly name: string; readonly id: string },
  ) {
    [this.#nats, this.#subject] = [nats, `${name}.node.${id}`];
  }

  /** @inheritdoc SharedLog.broadcast. */
  async send(data: Uint8Array): Promise<void> {
    const connection = await this.#nats.connection(0).catch(() => undefined);
    if (connection?.isClosed() === false) connection.publish(this.#subject, data);
  }

  /** @inheritdoc SharedLog.onBroadcast. */
  listen(listener: (data: Uint8Array) => void): () => void {
    this.#listeners.add(listener);
    this.#running ??= this.#run();
    return () => this.#listeners.delete(listener);
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  /** Subscribes over each connection, one after the other. */
  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await this.#receive(signal).catch(() => undefined);
      await delay(readAgainMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Resolves when the connection is lost, or the signal aborts. */
  async #receive(signal: AbortSignal): Promise<void> {
    const connection = await this.#nats.connection(requestMsMax);
    await new Promise<void>((resolve) => {
      const ended = (): void => {
        forget();
        signal.removeEventListener('abort', ended);
        if (!connection.isClosed()) subscription.unsubscribe();
        resolve();
      };
      const forget = this.#nats.onLost(ended);
      const subscription = connection.subscribe(this.#subject, {
        callback: (error, { data }) => {
          if (error !== null) ended();
          else for (const listener of this.#listeners) listener(data);
        },
      });
      signal.addEventListener('abort', ended);
      if (signal.aborted) ended();
    });
  }
}
