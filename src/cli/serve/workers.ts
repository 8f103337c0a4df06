import cluster, { type Worker } from 'node:cluster';
import { isSea } from 'node:sea';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import type { BackgroundTasks, RunningTask } from '../../core/background/tasks.ts';
import type { Config, ConfigResult } from '../../core/config/config.ts';
import type { Log } from '../../core/report/log.ts';
import { returnHandedOver, watchAcceptors } from '../../core/server/listening/node-internals.ts';
import { TicketKey } from '../../core/server/tls/ticket-key.ts';
import type { AccessRows } from '../../modules/status/live-access.ts';
import { stopGraceMs } from '../limits.ts';
import type { ListeningSocket } from './inherited-sockets.ts';
import {
  type AccessMessage,
  type LeaderMessage,
  type WorkerMessage,
  serializeConfig,
} from './worker-messages.ts';
import { LeaderMetrics, LeaderTokens } from './worker-metrics.ts';

/** Messages with lines that a process may not have read yet; the leader drops further ones. */
export const liveMessagesUnreadMax = 4;

/** The part of the leading process: passes lines to the workers whose clients read them. */
export class LeaderAccess {
  readonly #watching = new Set<MessagePort>();
  /** Messages with lines that a worker has not taken yet, and lines that it misses. */
  readonly #unread = new WeakMap<MessagePort, { messages: number; dropped: number }>();

  /** Handles a message of a worker about the live access log; `workers` are all that run. */
  handle(message: AccessMessage, from: MessagePort, workers: Iterable<MessagePort>): void {
    if (message.kind === 'watch-access') {
      if (message.isWatching) this.#watching.add(from);
      else this.#watching.delete(from);
      for (const worker of workers) this.tell(worker);
      return;
    }
    for (const worker of this.#watching) if (worker !== from) this.#pass(message.lines, worker);
  }

  /** Tells a worker whether others read the access log. */
  tell(worker: MessagePort): void {
    const isWatching = [...this.#watching].some((one) => one !== worker);
    if (worker.isConnected()) worker.send({ kind: 'watch-access', isWatching }, () => undefined);
  }

  /** Forgets a worker that has ended. */
  remove(worker: MessagePort, workers: Iterable<MessagePort>): void {
    if (!this.#watching.delete(worker)) return;
    for (const other of workers) this.tell(other);
  }

  /** Sends lines to a worker; drops them while it has not taken earlier ones. */
  #pass({ rows, dropped }: AccessRows, worker: MessagePort): void {
    if (!worker.isConnected()) return;
    const unread = this.#unread.get(worker) ?? { messages: 0, dropped: 0 };
    this.#unread.set(worker, unread);
    if (unread.messages >= liveMessagesUnreadMax) {
      unread.dropped += rows.length + dropped;
      return;
    }
    const lines = { rows, dropped: dropped + unread.dropped };
    unread.dropped = 0;
    unread.messages += 1;
    worker.send({ kind: 'access-lines', lines }, () => {
      unread.messages -= 1;
    });
  }
}

/** How long after the end of a worker a new one is started, at first and at most. */
const workerRestartMs = 100;
const workerRestartMsMax = 30_000;

/** A worker that ran for this long did not end because it could not start. */
const workerSettledMs = 60_000;

/** The configuration for a worker that starts. */
interface CurrentConfig {
  readonly config: Config;
  /** Results of reading the ini file since: changes that need a restart, and problems. */
  readonly pending: readonly ConfigResult[];
  /** Listening sockets that the leading process has inherited. */
  readonly sockets: readonly ListeningSocket[];
}

/**
 * The worker processes, which share ports and data folder. A worker that ends unexpectedly is
 * replaced, at growing intervals if that repeats.
 */
export class Workers {
  readonly #log: Log;
  readonly #currentConfig: () => CurrentConfig;
  /** The running workers with their numbers. */
  readonly #running = new Map<Worker, number>();
  readonly #metrics: LeaderMetrics;
  readonly #access = new LeaderAccess();
  readonly #tokens = new LeaderTokens();
  readonly #ticketKey = new TicketKey();
  readonly #rotation: RunningTask;
  readonly #serving = new Set<Worker>();
  /** Workers that have a configuration, and get every later one. */
  readonly #configured = new WeakSet<Worker>();
  /** The numbers of connections that are on their way to each worker. */
  readonly #onTheirWay = new Map<Worker, () => number>();
  readonly #closeAcceptors = watchAcceptors();
  #stopping = false;
  #cut = 0;
  /** Why the first worker cannot serve, if it has said so. */
  #failure: string | undefined;

  /** `args` is the command line of a worker; `currentConfig` returns the configuration in use. */
  constructor(
    args: readonly string[],
    { log, tasks }: { readonly log: Log; readonly tasks: BackgroundTasks },
    currentConfig: () => CurrentConfig,
  ) {
    this.#log = log;
    this.#metrics = new LeaderMetrics(tasks);
    this.#rotation = tasks.start(this.#ticketKey.rotation());
    this.#currentConfig = currentConfig;
    this.#ticketKey.follow((key) => {
      for (const worker of this.#running.keys()) {
        if (this.#configured.has(worker) && worker.isConnected()) sendTicketKey(worker, key);
      }
    });
    const { script, nodeFlags, words } = ownCommand(args);
    const [exec = '', ...rest] = script === undefined ? words : [script, ...words];
    cluster.setupPrimary({ exec, args: rest, execArgv: [...nodeFlags] });
  }

  /** Why the workers cannot serve, after `start` has resolved to undefined. */
  get failure(): string {
    return this.#failure ?? 'the first worker ended; its standard error says why';
  }

  /**
   * Starts `count` workers. The first one starts alone, so that only one reports why it cannot
   * serve. Resolves to their addresses, or to undefined if they cannot serve.
   */
  async start(count: number): Promise<readonly string[] | undefined> {
    const addresses = await this.#startOne(1);
    if (addresses === undefined) return undefined;
    const others = Array.from({ length: count - 1 }, (_, at) => this.#startOne(at + 2));
    await Promise.all(others);
    return addresses;
  }

  /** Sends the result of reading the ini file to all workers. */
  reload(result: ConfigResult): void {
    for (const worker of this.#running.keys()) {
      if (this.#configured.has(worker) && worker.isConnected()) this.#reload(worker, result);
    }
  }

  /**
   * Accepts no more connections, and lets the workers end with their last ones; resolves when they
   * have ended, or when the signal aborts.
   */
  async drain(signal: AbortSignal): Promise<void> {
    this.#stopping = true;
    this.#closeAcceptors();
    while (this.#isHandingOver() && !signal.aborted) await nextTurn();
    const ends = [...this.#running.keys()].map((worker) => {
      const ended = new Promise((resolve) => worker.once('exit', resolve));
      if (!this.#serving.has(worker)) worker.process.kill('SIGTERM');
      else if (worker.isConnected()) worker.send({ kind: 'drain' } satisfies LeaderMessage);
      return ended;
    });
    const aborted = new Promise((resolve) => {
      signal.addEventListener('abort', resolve, { once: true });
      if (signal.aborted) resolve(undefined);
    });
    await Promise.race([Promise.all(ends), aborted]);
  }

  /** Whether a connection that the leading process has accepted is on its way to a worker. */
  #isHandingOver(): boolean {
    return [...this.#running.keys()].some((worker) => this.#onTheirWay.get(worker)?.() !== 0);
  }

  /** Stops all workers; resolves to the number of requests that were cut off. */
  async stop(): Promise<number> {
    this.#stopping = true;
    await this.#rotation.stop();
    const ends = [...this.#running.keys()].map((worker) => {
      const ended = new Promise((resolve) => worker.once('exit', resolve));
      // A worker that is starting does not read messages yet: one would be lost.
      if (!this.#serving.has(worker)) worker.process.kill('SIGTERM');
      else if (worker.isConnected()) worker.send({ kind: 'stop' } satisfies LeaderMessage);
      return ended;
    });
    const killTimer = setTimeout(() => {
      this.kill();
    }, 2 * stopGraceMs);
    await Promise.all(ends);
    clearTimeout(killTimer);
    return this.#cut;
  }

  /** Makes all workers reopen the file of the access log. */
  reopenLogs(): void {
    for (const worker of this.#running.keys()) {
      if (worker.isConnected()) worker.send({ kind: 'reopen-logs' } satisfies LeaderMessage);
    }
  }

  /** Kills all workers. */
  kill(): void {
    for (const worker of this.#running.keys()) worker.process.kill('SIGKILL');
  }

  /** Starts a worker; resolves when it serves, or to undefined if it ends before. */
  async #startOne(number: number, restarts = 0): Promise<readonly string[] | undefined> {
    const startedMs = performance.now();
    const worker = cluster.fork({ WAYMARK_WORKER: String(number) });
    this.#running.set(worker, number);
    const onTheirWay = returnHandedOver(worker, () => this.#hasOthers(worker));
    this.#onTheirWay.set(worker, onTheirWay);
    let isServing = false;
    return new Promise((resolve) => {
      worker.on('message', (message: WorkerMessage) => {
        switch (message.kind) {
          case 'stopped':
            this.#cut += message.cut;
            break;
          case 'failed':
            this.#failure = message.message;
            break;
          case 'serving':
            isServing = true;
            this.#serving.add(worker);
            this.#access.tell(worker);
            resolve(message.addresses);
            break;
          case 'get-config':
            this.#configure(worker);
            break;
          case 'watch-access':
          case 'access-lines':
            this.#access.handle(message, worker, this.#serving);
            break;
          case 'take-token':
            this.#tokens.handle(message, worker);
            break;
          case 'count-token':
            this.#tokens.count(message, worker, this.#serving);
            break;
          case 'get-all-metrics':
          case 'own-metrics':
            void this.#metrics.handle(message, worker, this.#running);
        }
      });
      // A message to a worker that has just ended is lost; `exit` reports its end.
      worker.on('error', (error) => {
        this.#log.debug({ err: error, worker: number }, 'a message to a worker was lost');
      });
      worker.once('exit', (code: number | null, signal: string | null) => {
        this.#running.delete(worker);
        this.#serving.delete(worker);
        this.#access.remove(worker, this.#serving);
        this.#onTheirWay.delete(worker);
        resolve(undefined);
        if (this.#stopping) return;
        const cause = signal ?? `exit code ${code ?? ''}`;
        if (number === 1 && !isServing && restarts === 0) {
          // The start has failed; a worker that ended by itself has logged the reason.
          if (signal !== null) this.#log.error({}, `The first worker was killed by ${cause}.`);
          return;
        }
        const lived = performance.now() - startedMs;
        void this.#replace(number, {
          cause,
          restarts: lived > workerSettledMs ? 1 : restarts + 1,
        });
      });
    });
  }

  #configure(worker: Worker): void {
    const { config, pending, sockets } = this.#currentConfig();
    this.#configured.add(worker);
    sendTicketKey(worker, this.#ticketKey.current);
    const serialized = serializeConfig(config);
    worker.send({ kind: 'config', serialized, sockets } satisfies LeaderMessage);
    for (const result of pending) this.#reload(worker, result);
  }

  #reload(worker: Worker, result: ConfigResult): void {
    worker.send({ kind: 'reload', serialized: serializeConfig(result) } satisfies LeaderMessage);
  }

  #hasOthers(than: Worker): boolean {
    return [...this.#running.keys()].some(
      (worker) => worker !== than && this.#serving.has(worker) && worker.isConnected(),
    );
  }

  async #replace(
    number: number,
    { cause, restarts }: { readonly cause: string; readonly restarts: number },
  ): Promise<void> {
    const waitMs = Math.min(workerRestartMs * 2 ** (restarts - 1), workerRestartMsMax);
    this.#log.error({ worker: number }, `A worker ended (${cause}); starting a new one.`);
    await delay(waitMs, undefined, { ref: false });
    if (!this.#stopping) await this.#startOne(number, restarts);
  }
}

function sendTicketKey(worker: Worker, key: Buffer): void {
  worker.send({ kind: 'ticket-key', key: key.toString('base64') } satisfies LeaderMessage);
}

/** A command line that runs this program with other arguments. */
interface OwnCommand {
  readonly file: string;
  readonly nodeFlags: readonly string[];
  /** The script that Node.js runs; undefined in the single executable, which contains it. */
  readonly script: string | undefined;
  readonly words: readonly string[];
}

/** The command line of this program with other arguments. */
export function ownCommand(words: readonly string[]): OwnCommand {
  const [file, nodeFlags] = [process.execPath, process.execArgv];
  // A single executable gets its flags from itself; it takes others for words of the command line.
  if (isSea()) return { file, nodeFlags: [], script: undefined, words };
  return { file, nodeFlags, script: process.argv[1], words };
}

/** A worker that messages can be sent to. */
export type MessagePort = Pick<Worker, 'isConnected'> & {
  send(message: AccessMessage, sent: () => void): unknown;
};
