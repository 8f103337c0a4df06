import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

/** How long a thread for bcrypt waits for more. */
const threadIdleMs = 30_000;

interface Job {
  readonly id: number;
  readonly password: string;
  /** `$2b$…` */
  readonly hash: string;
}

interface Message {
  readonly id: number;
  readonly isRight: boolean;
}

interface Waiting {
  readonly resolve: (isRight: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Checks passwords against hashes of bcrypt in a thread, which starts with the first one and ends
 * when none has come for a while.
 */
export class BcryptThread {
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #timer: NodeJS.Timeout | undefined;
  #last = 0;

  /** Whether a password has a hash. Rejects if the thread fails. */
  isRight(password: string, hash: string): Promise<boolean> {
    clearTimeout(this.#timer);
    this.#worker ??= this.#start();
    this.#last += 1;
    // htpasswd writes 2y for what other programs call 2b.
    const job: Job = { id: this.#last, password, hash: hash.replace(/^\$2y\$/, '$2b$') };
    this.#worker.ref();
    this.#worker.postMessage(job);
    return new Promise((resolve, reject) => {
      this.#waiting.set(job.id, { resolve, reject });
    });
  }

  #start(): Worker {
    const worker = new Worker(new URL(import.meta.url), {
      workerData: { bcrypt: true } satisfies ThreadData,
    });
    worker.on('message', ({ id, isRight }: Message) => {
      this.#waiting.get(id)?.resolve(isRight);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) this.#rest(worker);
    });
    worker.on('error', (error) => {
      this.#fail(worker, error);
    });
    worker.on('exit', () => {
      this.#fail(worker, new Error('The thread for bcrypt has ended.'));
    });
    return worker;
  }

  /** The process may end meanwhile. */
  #rest(worker: Worker): void {
    worker.unref();
    this.#timer = setTimeout(() => {
      if (this.#worker === worker) this.#worker = undefined;
      void worker.terminate();
    }, threadIdleMs).unref();
  }

  #fail(worker: Worker, error: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

interface ThreadData {
  readonly bcrypt: true;
}

if (!isMainThread && (workerData as Partial<ThreadData> | null)?.bcrypt === true) {
  const { compareSync } = await import('bcryptjs');
  parentPort?.on('message', ({ id, password, hash }: Job) => {
    parentPort?.postMessage({ id, isRight: compareSync(password, hash) } satisfies Message);
  });
}
