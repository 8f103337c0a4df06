import { setTimeout as delay } from 'node:timers/promises';
import type { Databases } from '../../../core/log/databases.ts';
import { type EntryContent, type Notice, decodeEntry } from '../../../core/log/shared/entry.ts';
import type { SharedEntry, SharedLog } from '../../../core/log/shared/shared-log.ts';
import { memberOf, putSharedPlace, sharedPlace } from '../../../core/log/shared/shared-place.ts';
import { hasValues } from '../../../core/log/shared/shared-values.ts';
import type { Reads } from '../../../core/log/store.ts';
import { copiedRows, putCopiedRows } from '../../../core/log/write/copied-rows.ts';
import type { WriteQueue } from '../../../core/log/write/write-queue.ts';
import { Failure, stoppingFailure } from '../../../core/values/failure.ts';
import { putRecorded } from './recorded-puts.ts';

/** Entries of a shared log that are applied at once … */
const appliedAtOnceMax = 256;

/** … and about how many bytes of them. */
const appliedAtOnceBytesMax = 16 * 2 ** 20;

/** How long a write waits while no entry comes, although the shared log has more. */
const sharedProgressMs = 10_000;

/** When a node tries to follow the shared log again after an error. */
const sharedRetryMs = 1_000;

/** How often it tries an entry that it cannot apply: another server may have it undamaged. */
const entryTriesMax = 3;

/** … and the others wait for it at most this long. */
const turnMs = 15_000;

interface SharedFollowerParts {
  readonly databases: Databases;
  readonly reads: Reads;
  readonly queue: WriteQueue;
  readonly shared: SharedLog;
  /** Called after entries were applied. */
  readonly wake: () => void;
  /** Called after values may have changed: see Values. */
  readonly valuesChanged: () => void;
  /** Does what a notice says; it may come twice. */
  readonly notice: (notice: Notice) => Promise<void>;
  /** Called when it cannot continue, and when it tries again. */
  readonly failed: (error: unknown) => void;
}

interface Waiting {
  readonly position: number;
  readonly resolve: () => void;
}

/** Applies the entries of a shared log to the databases of this node, in their order. */
export class SharedFollower {
  readonly #parts: SharedFollowerParts;
  readonly #stopped = new AbortController();
  readonly #waiting = new Set<Waiting>();
  #running: Promise<void> | undefined;
  /** Why it cannot continue; undefined while it can. */
  #broken: Failure | undefined;
  /** The entry that it could not apply, and how often it has tried in a row. */
  #unapplied = { position: 0, tries: 0 };

  readonly turns: Turns;

  constructor(parts: SharedFollowerParts) {
    this.#parts = parts;
    this.turns = new Turns(memberOf(parts.databases));
  }

  /** The position of the last entry that the databases have. */
  get position(): number {
    return sharedPlace(this.#parts.databases)?.position ?? 0;
  }

  /** Why this node cannot follow the shared log any more; undefined while it can. */
  get failure(): Failure | undefined {
    return this.#broken;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    for (const { resolve } of this.#waiting) resolve();
    await this.#running;
  }

  /**
   * Resolves when an entry at a position or after it is applied. Rejects with `unavailable` if none
   * was applied for some seconds, or at a stop; with `conflict` if the follower cannot continue.
   */
  async reach(position: number): Promise<void> {
    while (this.position < position) {
      if (this.#broken !== undefined) throw this.#broken;
      if (this.#stopped.signal.aborted) throw stoppingFailure();
      const before = this.position;
      const wait = new AbortController();
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const waiting: Waiting = {
        position,
        resolve: () => {
          resolve(undefined);
        },
      };
      this.#waiting.add(waiting);
      const timer = delay(sharedProgressMs, 'late', { signal: wait.signal, ref: false });
      const outcome = await Promise.race([promise, timer.catch(() => undefined)]);
      wait.abort();
      this.#waiting.delete(waiting);
      if (outcome === 'late' && this.position === before) throw behindFailure();
    }
  }

  /** Applies an entry, unless the databases have it. Rejects as WriteQueue.write. */
  async apply(entry: SharedEntry): Promise<void> {
    const content = decodeEntry(entry.data);
    await this.#applyNotices(content);
    await this.#put(entry, content);
  }

  async #applyNotices(content: EntryContent): Promise<void> {
    this.turns.see(content);
    for (const notice of content.notices) await this.#parts.notice(notice);
  }

  async #put(
    { after, position }: SharedEntry,
    { rows, claims, puts }: EntryContent,
  ): Promise<void> {
    const { databases, reads, queue, shared, wake, valuesChanged } = this.#parts;
    // Other processes of this node apply the same entries.
    if (this.position < position)
      await queue.write(() => {
        const place = sharedPlace(databases)?.position ?? 0;
        if (place >= position) return () => ({ result: undefined, bytes: 0 });
        if (place !== after) {
          throw new Failure('conflict', `Entry ${position} of the shared log does not follow.`);
        }
        const copied = copiedRows(rows, reads.seq());
        return () => {
          const bytes = putCopiedRows(databases, reads, copied);
          for (const [key, value] of claims) databases.vk.putSync(Buffer.from(key, 'hex'), value);
          putRecorded(databases, puts);
          putSharedPlace(databases, { id: shared.id, position });
          return { result: undefined, bytes };
        };
      });
    wake();
    if (hasValues(puts)) valuesChanged();
    for (const waiting of this.#waiting) if (waiting.position <= position) waiting.resolve();
  }

  async #run(): Promise<void> {
    const { failed, valuesChanged } = this.#parts;
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      try {
        await this.#follow(signal);
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        failed(error);
        if (error instanceof Failure && error.code === 'conflict') {
          this.#broken = error;
          for (const { resolve } of this.#waiting) resolve();
          return;
        }
      }
      await delay(sharedRetryMs, undefined, { signal }).catch(() => undefined);
      // Another process of this node may have applied entries that this one does not see.
      valuesChanged();
    }
  }

  /** One transaction of LMDB takes the entries that come while the one before it is written. */
  async #follow(stop: AbortSignal): Promise<void> {
    const failing = new AbortController();
    const signal = AbortSignal.any([stop, failing.signal]);
    let puts: Promise<void>[] = [];
    let bytes = 0;
    for await (const entry of this.#parts.shared.entries(this.position, signal)) {
      const content = await this.#decoded(entry);
      const put = this.#put(entry, content).catch((error: unknown) => {
        // Those behind it fail because of the first one.
        if (!failing.signal.aborted) failing.abort(this.#unappliedReason(entry, error));
      });
      puts.push(put);
      bytes += entry.data.length;
      if (puts.length < appliedAtOnceMax && bytes < appliedAtOnceBytesMax) continue;
      await Promise.all(puts);
      [puts, bytes] = [[], 0];
    }
    await Promise.all(puts);
    failing.signal.throwIfAborted();
  }

  async #decoded(entry: SharedEntry): Promise<EntryContent> {
    try {
      const content = decodeEntry(entry.data);
      await this.#applyNotices(content);
      return content;
    } catch (error) {
      throw error instanceof Failure ? error : this.#unappliedReason(entry, error);
    }
  }

  /**
   * The reason why an entry could not be applied: `conflict` if the entry is it, and the follower
   * has tried some times.
   */
  #unappliedReason({ position }: SharedEntry, error: unknown): unknown {
    if (error instanceof Failure && error.code !== 'conflict') return error;
    const tries = this.#unapplied.position === position ? this.#unapplied.tries + 1 : 1;
    this.#unapplied = { position, tries };
    const what = `Entry ${position} of the log of the cluster cannot be applied`;
    if (tries < entryTriesMax) return new Error(`${what}; the node tries again.`, { cause: error });
    const reason = error instanceof Error ? error.message : String(error);
    return new Failure(
      'conflict',
      `${what}: ${reason}. It is damaged, or another program has written it. Find out which one ` +
        'can write to the stream, change the password of NATS, and begin a new cluster with the ' +
        'data folder of one machine: docs/how-to/cluster.md.',
      { cause: error },
    );
  }
}

function behindFailure(): Failure {
  return new Failure('unavailable', 'This node does not get the changes of the others.', {
    retryAfterSeconds: 5,
  });
}

const turnNotice = 'turn';

/**
 * The turns of nodes to append. A node that is late again and again, because its writes take long
 * to decide, claims one: the others wait until its entry comes, or for turnMs. Nothing depends on
 * that they do, apart from time.
 */
export class Turns {
  readonly #member: string;
  /** The holder of the turn, the same for all nodes, until `ended` aborts. */
  #turn:
    | { readonly member: string; readonly endMs: number; readonly ended: AbortController }
    | undefined;

  constructor(member: string) {
    this.#member = member;
  }

  /** The notice by which this node claims the next turn. */
  claim(): Notice {
    return { name: turnNotice, data: { member: this.#member } };
  }

  /** Resolves when no other node has the turn. */
  async others(): Promise<void> {
    while (this.#turn !== undefined && this.#turn.member !== this.#member) {
      const { ended, endMs } = this.#turn;
      const { signal } = ended;
      const leftMs = Math.max(0, endMs - performance.now());
      await delay(leftMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (!signal.aborted) this.#end();
    }
  }

  /**
   * Reads the holder of the turn from an entry of the log; a claim during another one has no
   * effect.
   */
  see({ member, notices, rows, puts }: EntryContent): void {
    if (rows.length + puts.length > 0 && member === this.#turn?.member) this.#end();
    const now = performance.now();
    for (const { name, data } of notices) {
      const isTaken = this.#turn !== undefined && now < this.#turn.endMs;
      if (name !== turnNotice || isTaken) continue;
      this.#end();
      const ended = new AbortController();
      this.#turn = { member: data.member as string, endMs: now + turnMs, ended };
    }
  }

  #end(): void {
    this.#turn?.ended.abort();
    this.#turn = undefined;
  }
}
