import { ABORT } from 'lmdb';
import { packClaim } from '../../../core/log/claims.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { transact } from '../../../core/log/environment.ts';
import { commitBatchBytesMax, commitBatchMax } from '../../../core/log/limits.ts';
import {
  type EntryContent,
  type Notice,
  emptyContent,
  encodeEntry,
} from '../../../core/log/shared/entry.ts';
import type {
  DeliveryWriter,
  PutDelivery,
  SharedLog,
} from '../../../core/log/shared/shared-log.ts';
import { sharedPlace } from '../../../core/log/shared/shared-place.ts';
import type { DecidedWrite, LogWriter } from '../../../core/log/write/commit.ts';
import type { WritePlan } from '../../../core/log/write/write-plan.ts';
import { putWrites } from '../../../core/log/write/write-puts.ts';
import { type StoreCondition, storageFailure } from '../../../core/log/write/write-queue.ts';
import { Failure, stoppingFailure } from '../../../core/values/failure.ts';
import { recordingDatabases } from './recorded-puts.ts';
import type { SharedFollower } from './shared-follower.ts';

/** After this many appends in a row for which other nodes were faster, a node claims a turn … */
export const lossesMax = 5;

interface SharedWriterParts {
  readonly databases: Databases;
  readonly condition: StoreCondition;
  readonly shared: SharedLog;
  readonly follower: SharedFollower;
  /** See memberOf. */
  readonly member: string;
}

/** A decision to log rows, or one to write into the databases of the deliverer. */
type Decide<T> = () => DecidedWrite<T> | PutDelivery<T>;

interface WaitingWrite {
  readonly decide: Decide<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** An end of the shared log that was read after the write arrived; undefined if unknown. */
  end: number | undefined;
}

/** The result of a decision at a position of the shared log. */
interface Outcome {
  readonly write: WaitingWrite;
  readonly result: { readonly value: unknown } | { readonly error: unknown };
}

/** The decisions of one attempt to append. */
interface Round {
  /** The position that they have seen. */
  readonly after: number;
  readonly outcomes: readonly Outcome[];
  readonly content: EntryContent;
}

/**
 * Appends decisions to a shared log: all that wait share one entry, and decide again if another
 * node was faster (docs/design/cluster.md#commit).
 */
export class SharedWriter implements LogWriter, DeliveryWriter {
  readonly #parts: SharedWriterParts;
  #waiting: WaitingWrite[] = [];
  /** How often in a row another node was faster. */
  #losses = 0;
  /** How many of the first waiting writes get an entry of their own. */
  #alone = 0;
  #running: Promise<void> | undefined;
  #closed = false;

  constructor(parts: SharedWriterParts) {
    this.#parts = parts;
  }

  get length(): number {
    return this.#waiting.length;
  }

  write<T>(decide: Decide<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const { refusal } = this.#parts.condition;
      if (this.#closed || refusal !== undefined) {
        reject(refusal ?? stoppingFailure());
        return;
      }
      const answer = (result: unknown): void => {
        resolve(result as T);
      };
      this.#waiting.push({ decide, reject, resolve: answer, end: undefined });
      this.#running ??= this.#run();
    });
  }

  /** Appends a notice for all nodes; resolves when this node has applied it, too. */
  async tell(notice: Notice): Promise<void> {
    const { shared, follower } = this.#parts;
    const data = encodeEntry({ ...emptyContent, member: this.#parts.member, notices: [notice] });
    for (;;) {
      const after = follower.position;
      const position = await shared.append(data, after);
      if (position !== undefined) return follower.reach(position);
      await follower.reach(after + 1);
    }
  }

  /** Refuses further writes; resolves when the earlier ones are answered. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    // All writes of this turn of the event loop go into the first entry.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#write();
    this.#running = undefined;
  }

  async #write(): Promise<void> {
    let round: Round;
    try {
      if (this.#parts.follower.failure !== undefined) {
        throw notFollowingFailure(this.#parts.follower.failure);
      }
      await this.#parts.follower.turns.others();
      round = await this.#decide();
    } catch (error) {
      const reason = await storageFailure(error);
      for (const { reject } of this.#waiting.splice(0)) reject(reason);
      return;
    }
    try {
      const { rows, puts } = round.content;
      if (rows.length > 0 || puts.length > 0) await this.#append(round);
      else await this.#confirm(round);
    } catch (error) {
      const { length } = round.outcomes;
      if (length > 1 && error instanceof Failure && error.code === 'too_large') {
        this.#alone = length;
        return;
      }
      this.#take(round, ({ write }) => {
        write.reject(error);
      });
    }
  }

  /** Runs the decisions on the databases as they are, and takes back what they have put. */
  async #decide(): Promise<Round> {
    const { databases } = this.#parts;
    const { promise, resolve } = Promise.withResolvers<Round>();
    await transact(databases.environment, () => {
      const after = sharedPlace(databases)?.position ?? 0;
      const outcomes: Outcome[] = [];
      const rows: string[] = [];
      const claims: (readonly [string, string])[] = [];
      const recording = recordingDatabases(databases);
      const most = this.#alone > 0 ? 1 : commitBatchMax;
      let bytes = 0;
      for (const write of this.#waiting) {
        if (outcomes.length >= most || bytes >= commitBatchBytesMax) break;
        const decided = decisionOf(write);
        if (typeof decided === 'function') {
          outcomes.push({ write, result: { value: decided(recording.databases) } });
        } else if ('error' in decided) {
          outcomes.push({ write, result: decided });
        } else {
          const { plan, result } = decided;
          bytes += putWrites(databases, plan);
          for (const row of rowsOf(databases, plan)) rows.push(row);
          for (const claim of claimsOf(plan)) claims.push(claim);
          outcomes.push({ write, result: { value: result } });
        }
      }
      const { puts } = recording;
      resolve({
        after,
        outcomes,
        content: { member: this.#parts.member, rows, claims, puts, notices: [] },
      });
      return ABORT;
    });
    return promise;
  }

  /**
   * Answers decisions that write nothing, if they have seen all entries that were in the log when
   * they arrived. They need not see later entries.
   */
  async #confirm(round: Round): Promise<void> {
    const { shared, follower } = this.#parts;
    // Those that have waited longest, because they learnt an earlier end.
    const known = round.outcomes.filter(({ write }) => (write.end ?? Infinity) <= round.after);
    if (known.length > 0) {
      this.#take({ ...round, outcomes: known }, answer);
      return;
    }
    const end = await shared.end();
    for (const { write } of round.outcomes) write.end ??= end;
    if (end > round.after) await follower.reach(end);
    else this.#take(round, answer);
  }

  /**
   * Appends what the decisions write, and answers all of them: those that write nothing may depend
   * on the others, and have seen the newest state if the append succeeds.
   */
  async #append(round: Round): Promise<void> {
    const { shared, follower } = this.#parts;
    const { after, content } = round;
    const data = encodeEntry(content);
    const position = await shared.append(data, after);
    if (position === undefined) {
      await follower.reach(after + 1);
      this.#losses += 1;
      if (this.#losses % lossesMax === 0) await this.tell(follower.turns.claim());
      return;
    }
    this.#losses = 0;
    try {
      await follower.apply({ after, position, data });
    } catch (cause) {
      throw unappliedFailure(cause);
    }
    this.#take(round, answer);
  }

  /** Ends a round: its decisions are the first in the queue. */
  #take({ outcomes }: Round, end: (outcome: Outcome) => void): void {
    this.#waiting.splice(0, outcomes.length);
    this.#alone = Math.max(0, this.#alone - outcomes.length);
    for (const outcome of outcomes) end(outcome);
  }
}

function answer({ write: { resolve, reject }, result }: Outcome): void {
  if ('error' in result) reject(result.error);
  else resolve(result.value);
}

function decisionOf({
  decide,
}: WaitingWrite): ReturnType<Decide<unknown>> | { readonly error: unknown } {
  try {
    return decide();
  } catch (error) {
    return { error };
  }
}

function rowsOf({ log }: Databases, { firstSeq, steps }: WritePlan): readonly string[] {
  return steps.map((_, index) => {
    const text = log.get(firstSeq + index);
    if (text === undefined) throw new Error(`the log has no change ${firstSeq + index}`);
    return text;
  });
}

function claimsOf({ steps }: WritePlan): EntryContent['claims'] {
  return steps.flatMap(({ claim }) => {
    if (claim === undefined) return [];
    const [key, value] = packClaim(claim);
    return [[key.toString('hex'), value] as const];
  });
}

function notFollowingFailure(cause: Failure): Failure {
  return new Failure(
    'unavailable',
    'This node cannot follow the log of the cluster, so it takes no changes; server.status says ' +
      'why. Use another node.',
    { retryAfterSeconds: 5, cause },
  );
}

function unappliedFailure(cause: unknown): Failure {
  return new Failure(
    'unavailable',
    'The cluster has stored the change, but this node could not apply it.',
    { retryAfterSeconds: 5, cause },
  );
}
