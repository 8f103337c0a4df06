import cluster, { type Worker } from 'node:cluster';
import { setTimeout as delay } from 'node:timers/promises';
import type { Config, ConfigResult } from '../config/config.ts';
import type { Log } from '../observability/log.ts';
import { returnHandedOver } from './handed-over.ts';
import { stopGraceMs, workerRestartMs, workerRestartMsMax, workerSettledMs } from './limits.ts';
import { pack, type LeaderMessage, type WorkerMessage } from './worker-messages.ts';
import { MetricsOfWorkers } from './worker-metrics.ts';

/** What a worker that is started has to know of the configuration. */
interface Standing {
  readonly inForce: Config;
  /** What the ini file came to last, where that is not all in force, and what is wrong with it. */
  readonly pending: readonly ConfigResult[];
}

/**
 * Processes that share ports and data folder, led by this one: a worker that ends without being
 * asked to is replaced, at growing intervals where it keeps ending.
 */
export class Workers {
  readonly #log: Log;
  readonly #standing: () => Standing;
  /** With their numbers. */
  readonly #running = new Map<Worker, number>();
  readonly #metrics = new MetricsOfWorkers();
  readonly #serving = new WeakSet<Worker>();
  /** Those that know a configuration, and have to hear of every later one. */
  readonly #configured = new WeakSet<Worker>();
  #stopping = false;
  #cut = 0;

  /**
   * `args` are the words of the command line that a worker runs; `standing` says what is in force,
   * whatever the ini file has come to.
   */
  constructor(args: readonly string[], log: Log, standing: () => Standing) {
    this.#log = log;
    this.#standing = standing;
    cluster.setupPrimary({ args: [...args] });
  }

  /**
   * Starts so many workers. The first one goes ahead, and what keeps it from serving is said once,
   * by it. Resolves to where they serve; undefined when they cannot.
   */
  async start(count: number): Promise<readonly string[] | undefined> {
    const addresses = await this.#startOne(1);
    if (addresses === undefined) return undefined;
    const others = Array.from({ length: count - 1 }, (_, at) => this.#startOne(at + 2));
    await Promise.all(others);
    return addresses;
  }

  /** Tells all what the ini file has come to. */
  reload(result: ConfigResult): void {
    for (const worker of this.#running.keys()) {
      if (this.#configured.has(worker) && worker.isConnected()) this.#reload(worker, result);
    }
  }

  /** Asks all to end, and resolves to how many requests were cut off when the last one has. */
  async stop(): Promise<number> {
    this.#stopping = true;
    const ends = [...this.#running.keys()].map((worker) => {
      const ended = new Promise((resolve) => worker.once('exit', resolve));
      // One that is only starting does not listen yet: a message would be lost.
      if (!this.#serving.has(worker)) worker.process.kill('SIGTERM');
      else if (worker.isConnected()) worker.send({ kind: 'stop' } satisfies LeaderMessage);
      return ended;
    });
    const insist = setTimeout(() => {
      this.kill();
    }, 2 * stopGraceMs);
    await Promise.all(ends);
    clearTimeout(insist);
    return this.#cut;
  }

  /** Has all open the file of the access log again. */
  reopenLogs(): void {
    for (const worker of this.#running.keys()) {
      if (worker.isConnected()) worker.send({ kind: 'reopen-logs' } satisfies LeaderMessage);
    }
  }

  /** Ends all at once. */
  kill(): void {
    for (const worker of this.#running.keys()) worker.process.kill('SIGKILL');
  }

  /** Starts the worker of a number; resolves when it serves, to undefined when it ends before. */
  async #startOne(number: number, restarts = 0): Promise<readonly string[] | undefined> {
    const startedMs = performance.now();
    const worker = cluster.fork({ WAYMARK_WORKER: String(number) });
    this.#running.set(worker, number);
    returnHandedOver(worker, () => this.#hasOthers(worker));
    let serves = false;
    return new Promise((resolve) => {
      worker.on('message', (message: WorkerMessage) => {
        switch (message.kind) {
          case 'stopped':
            this.#cut += message.cut;
            break;
          case 'serving':
            serves = true;
            this.#serving.add(worker);
            resolve(message.addresses);
            break;
          case 'ask-config':
            this.#configure(worker);
            break;
          case 'ask-metrics':
          case 'told-metrics':
            void this.#metrics.take(message, worker, this.#running);
        }
      });
      // What is said to one that has just died is lost; that it died is told by its exit.
      worker.on('error', (error) => {
        this.#log.debug({ err: error, worker: number }, 'a worker cannot be spoken to');
      });
      worker.once('exit', (code: number | null, signal: string | null) => {
        this.#running.delete(worker);
        resolve(undefined);
        if (this.#stopping) return;
        const how = signal ?? `exit code ${code ?? ''}`;
        if (number === 1 && !serves && restarts === 0) {
          // The start has failed, for a reason that only one who ended by itself has said.
          if (signal !== null) this.#log.error({}, `The first worker was ended by ${how}.`);
          return;
        }
        const lived = performance.now() - startedMs;
        void this.#replace(number, {
          how,
          restarts: lived > workerSettledMs ? 1 : restarts + 1,
        });
      });
    });
  }

  #configure(worker: Worker): void {
    const { inForce, pending } = this.#standing();
    this.#configured.add(worker);
    worker.send({ kind: 'config', packed: pack(inForce) } satisfies LeaderMessage);
    for (const result of pending) this.#reload(worker, result);
  }

  #reload(worker: Worker, result: ConfigResult): void {
    worker.send({ kind: 'reload', packed: pack(result) } satisfies LeaderMessage);
  }

  #hasOthers(than: Worker): boolean {
    return [...this.#running.keys()].some(
      (worker) => worker !== than && this.#serving.has(worker) && worker.isConnected(),
    );
  }

  async #replace(
    number: number,
    { how, restarts }: { readonly how: string; readonly restarts: number },
  ): Promise<void> {
    const waitMs = Math.min(workerRestartMs * 2 ** (restarts - 1), workerRestartMsMax);
    this.#log.error({ worker: number }, `A worker has ended (${how}); another one is started.`);
    await delay(waitMs, undefined, { ref: false });
    if (!this.#stopping) await this.#startOne(number, restarts);
  }
}
