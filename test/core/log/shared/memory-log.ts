import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { uuidv7 } from 'uuidv7';
import { decodeEntry } from '../../../../src/core/log/shared/entry.ts';
import type {
  SharedEntry,
  SharedFiles,
  SharedLog,
} from '../../../../src/core/log/shared/shared-log.ts';
import { Failure } from '../../../../src/core/values/failure.ts';

/** The outcome of the next append: see MemoryLog.next. */
type Fate = 'stored' | 'lost' | 'unanswered';

/** The entries of a shared log in memory, which several nodes have open. */
export class MemoryLog {
  readonly id: string;
  readonly #entries: SharedEntry[] = [];
  readonly #grown = new Set<() => void>();
  readonly #listeners = new Set<(data: Uint8Array) => void>();
  readonly #fates: Fate[] = [];
  /** The files that nodes share, by their hashes; when each was stored, in ms since 1970. */
  readonly files = new Map<string, { readonly content: Buffer; readonly storedMs: number }>();
  isReachable = true;
  /** Appends that found another entry after the position that they named. */
  superseded = 0;
  /** The size of the largest entry that it takes. */
  entryBytesMax = Infinity;

  constructor(id: string = uuidv7()) {
    this.id = id;
  }

  get entries(): readonly SharedEntry[] {
    return this.#entries;
  }

  /** Decides what happens to the next appends: stored without answer, or not at all. */
  next(...fates: readonly Fate[]): void {
    this.#fates.push(...fates);
  }

  /**
   * The log as one node sees it. For a slow node, another one always appends before its rows, if it
   * does so within a second.
   */
  open(isSlow = false): SharedLog {
    return {
      id: this.id,
      append: (data, after) => this.#append(data, after, isSlow),
      entries: (after, signal) => this.#read(after, signal),
      end: async () => {
        await this.#trip();
        return this.#end();
      },
      broadcast: (data) => {
        for (const listener of this.#listeners) listener(data);
        return Promise.resolve();
      },
      onBroadcast: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
      files: this.#sharedFiles(),
      state: () => ({ isConnected: this.isReachable, problem: undefined }),
      close: () => Promise.resolve(),
    };
  }

  #sharedFiles(): SharedFiles {
    const { files } = this;
    return {
      put: async (sha256, bytes, read) => {
        await this.#trip();
        const content = Buffer.from(await read(0, bytes));
        files.set(sha256, { content, storedMs: Date.now() });
      },
      get: async (sha256, first) => {
        await this.#trip();
        const content = files.get(sha256)?.content;
        return content && { first, chunks: Readable.from([content.subarray(first)]) };
      },
      list: async () => {
        await this.#trip();
        return [...files.keys()].map((sha256) => ({ sha256, isWhole: true }));
      },
      state: async () => {
        await this.#trip();
        return undefined;
      },
      remove: async (sha256, beforeMs) => {
        await this.#trip();
        if ((files.get(sha256)?.storedMs ?? Infinity) < beforeMs) files.delete(sha256);
      },
    };
  }

  #end(): number {
    return this.#entries.at(-1)?.position ?? 0;
  }

  async #append(data: Uint8Array, after: number, isSlow: boolean): Promise<number | undefined> {
    await this.#trip();
    if (isSlow && decodeEntry(data).rows.length > 0 && this.#end() === after) {
      await Promise.race([this.#growth(), delay(1_000)]);
    }
    if (data.length > this.entryBytesMax) {
      throw new Failure('too_large', 'The shared log does not take so large an entry.');
    }
    const fate = this.#fates.shift() ?? 'stored';
    if (fate === 'lost') throw unavailable();
    if (this.#end() !== after) {
      this.superseded += 1;
      return undefined;
    }
    // Positions need not be consecutive.
    const position = after + 1 + (after % 3);
    this.#entries.push({ after, position, data });
    for (const grown of this.#grown) grown();
    await this.#trip();
    if (fate === 'unanswered') throw unavailable();
    return position;
  }

  #growth(): Promise<undefined> {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const grown = (): void => {
      this.#grown.delete(grown);
      resolve(undefined);
    };
    this.#grown.add(grown);
    return promise;
  }

  async *#read(after: number, signal: AbortSignal): AsyncGenerator<SharedEntry> {
    let at = after;
    while (!signal.aborted) {
      const next = this.#entries.find((entry) => entry.after === at);
      if (next !== undefined) {
        at = next.position;
        yield next;
        continue;
      }
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const grown = (): void => {
        resolve(undefined);
      };
      this.#grown.add(grown);
      signal.addEventListener('abort', grown, { once: true });
      await promise;
      this.#grown.delete(grown);
      signal.removeEventListener('abort', grown);
    }
  }

  async #trip(): Promise<void> {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    if (!this.isReachable) throw unavailable();
  }
}

function unavailable(): Failure {
  return new Failure('unavailable', 'The shared log does not answer.', { retryAfterSeconds: 5 });
}
