import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { newId } from '../../core/values/clock.ts';
import { readImportLines, type LineChecks, type ReadLines } from './import-line.ts';
import type { ReadWholeLines } from './import-blocks.ts';

/** The data that the thread of this module gets at its start. */
interface Reading {
  readonly importChecks: LineChecks;
}

/** Lines for the thread, which answers in the order of its jobs. */
interface Job {
  readonly bytes: Uint8Array;
  readonly first: number;
}

/** Reads lines of an import, many of them in another thread. */
interface LineReader {
  readonly read: ReadWholeLines;
  /** Ends the thread. */
  close(): Promise<void>;
}

/**
 * Makes a reader with a thread of its own, because reading lines takes about as long as writing
 * them. The calling thread reads the first block: most imports have only one.
 */
export function createLineReader(checks: LineChecks): LineReader {
  let thread: ReadingThread | undefined;
  let isFirst = true;
  return {
    async read(bytes, first) {
      if (isFirst) {
        isFirst = false;
        return readImportLines(bytes, { first, newId, ...checks });
      }
      thread ??= new ReadingThread(checks);
      return thread.read({ bytes, first });
    },
    async close() {
      await thread?.close();
    },
  };
}

class ReadingThread {
  readonly #worker: Worker;
  readonly #waiting: PromiseWithResolvers<ReadLines>[] = [];

  constructor(checks: LineChecks) {
    const reading: Reading = { importChecks: checks };
    this.#worker = new Worker(new URL(import.meta.url), { workerData: reading });
    this.#worker.on('message', (lines: ReadLines) => this.#waiting.shift()?.resolve(lines));
    this.#worker.on('error', (error) => {
      for (const { reject } of this.#waiting.splice(0)) reject(error);
    });
  }

  read(job: Job): Promise<ReadLines> {
    const waiting = Promise.withResolvers<ReadLines>();
    this.#waiting.push(waiting);
    this.#worker.postMessage(job);
    return waiting.promise;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}

const reading = workerData as Partial<Reading> | null;
if (!isMainThread && reading?.importChecks !== undefined) {
  const { importChecks: checks } = reading;
  parentPort?.on('message', ({ bytes, first }: Job) => {
    const lines = readImportLines(bytes, { first, newId, ...checks });
    parentPort?.postMessage(lines);
  });
}
