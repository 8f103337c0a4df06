import { mkdtemp, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { open } from 'lmdb';
import type { Change } from '../../../core/log/change.ts';
import { type Databases, environmentOptions, openDatabases } from '../../../core/log/databases.ts';
import { errorReason } from '../../../core/log/folder/data-folder.ts';
import { isDiskFull, silenceDiskFullErrors } from '../../../core/log/folder/full-disk.ts';
import { createReads } from '../../../core/log/reads.ts';
import type { LogFamily, Reads } from '../../../core/log/store.ts';
import { type CopiedRow, planCopy, transactionsOf } from '../../../core/log/write/copied-rows.ts';
import type { WritePlan } from '../../../core/log/write/write-plan.ts';
import { putWrites } from '../../../core/log/write/write-puts.ts';
import { Failure } from '../../../core/values/failure.ts';
import { parseJson } from '../../../core/values/json/parse.ts';
import { MIB, megabytes } from '../../../core/values/units.ts';
import { completeIndexes } from '../../tables/log/index-build.ts';

/** … and changes, with their characters, that are folded in one transaction of a verification. */
const verifyFoldRows = 2_000;
const verifyFoldCharacters = 4 * MIB;

/** A place where a projection differs from the fold of the log. */
export interface Difference {
  /** Name of the database: see databases.ts. */
  readonly database: string;
  readonly what: string;
}

/** What a pass has found in some entries, which it looked at in one turn of the event loop. */
export interface Slice {
  readonly entries: number;
  readonly differences: readonly Difference[];
}

/** Where a check keeps its copy of the log with all projections. */
export interface Room {
  /** Absolute path of an existing folder. */
  readonly folder: string;
  /** The size of the data, which the copy hardly exceeds. */
  readonly bytes: number;
}

/**
 * Opens empty databases in a temporary folder, of which nothing remains if the process is killed.
 * Rejects with `storage_full` if the disk has less room than they may need, and with `unavailable`
 * if the folder cannot be written.
 */
export async function openScratch(room: Room): Promise<Scratch> {
  const { folder, bytes } = room;
  const unusable = (error: unknown): never => {
    const what = `cannot hold the temporary copy of the check (${errorReason(error)})`;
    throw new Failure('unavailable', `${folder} ${what}`, { cause: error });
  };
  const { bavail, bsize } = await statfs(folder).catch(unusable);
  if (bavail * bsize < bytes) throw noRoom(room, `has ${megabytes(bavail * bsize)} free`);
  const own = await mkdtemp(join(folder, '.check-')).catch(unusable);
  const remove = (): Promise<void> => rm(own, { recursive: true, force: true });
  const orNoRoom = <T>(use: () => T): T => {
    try {
      return use();
    } catch (error) {
      throw isDiskFull(error) ? noRoom(room, 'is full', error) : error;
    }
  };
  try {
    silenceDiskFullErrors();
    const mapSize = environmentOptions.mapSize + mapSizePerByte * bytes;
    const options = { path: own, ...environmentOptions, mapSize, noSync: true };
    const environment = orNoRoom(() => open(options));
    const databases = orNoRoom(() => environment.transactionSync(() => openDatabases(environment)));
    // The system frees the space of a removed file when its last user closes it.
    if (process.platform !== 'win32') await remove();
    return {
      databases,
      write(put) {
        orNoRoom(() => {
          environment.transactionSync(put);
        });
      },
      async close() {
        await environment.close();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Empty databases of a check. */
interface Scratch {
  readonly databases: Databases;
  /** Runs a write transaction. Throws `storage_full` if the disk is full. */
  write(put: () => void): void;
  close(): Promise<void>;
}

function noRoom({ folder, bytes }: Room, why: string, cause?: unknown): Failure {
  return new Failure(
    'storage_full',
    `The check folds the log into a temporary copy, which needs up to ${megabytes(bytes)}, but ` +
      `the disk of ${folder} ${why}. Make room there, or name a folder of another disk.`,
    { cause },
  );
}

/** Address space only. */
const mapSizePerByte = 4;

/** Reads a log in order, checks it, and applies it to empty databases as a follower's copy does. */
export class LogFold {
  readonly #source: Databases;
  readonly #scratch: Scratch;
  readonly #reads: Reads;
  #seq = 0;
  #storedAt = '';

  constructor(source: Databases, scratch: Scratch, families: readonly LogFamily[]) {
    this.#source = source;
    this.#scratch = scratch;
    this.#reads = createReads(scratch.databases, families);
  }

  /** The log and the projections as far as it was applied. */
  get copy(): Databases {
    return this.#scratch.databases;
  }

  /** Applies the changes that the copy does not have yet, some transactions at a time. */
  *slices(): Iterable<Slice> {
    for (;;) {
      const { rows, ...slice } = this.#read();
      if (slice.entries === 0) break;
      const differences = [...slice.differences];
      this.#scratch.write(() => {
        for (const transaction of transactionsOf(rows)) {
          differences.push(...this.#apply(transaction));
        }
      });
      yield { ...slice, differences };
    }
    if (this.copy.indexbuild.getKeysCount({ limit: 1 }) === 0) return;
    this.#scratch.write(() => {
      completeIndexes(this.copy, this.#reads);
    });
  }

  /** Reads rows up to the end of a transaction. */
  #read(): Slice & { readonly rows: readonly CopiedRow[] } {
    const rows: CopiedRow[] = [];
    const differences: Difference[] = [];
    let [entries, characters] = [0, 0];
    for (const { key: seq, value: text } of this.#source.log.getRange({ start: this.#seq + 1 })) {
      const change = changeOf(text);
      const isFull = entries >= verifyFoldRows || characters >= verifyFoldCharacters;
      if (isFull && change?.txn !== rows.at(-1)?.change.txn) break;
      differences.push(...this.#check(seq, change));
      if (change?.seq === seq) rows.push({ text, change });
      entries += 1;
      characters += text.length;
    }
    return { entries, differences, rows };
  }

  /** Checks that the log has no gap, and that its times never go back. */
  *#check(seq: number, change: Change | undefined): Iterable<Difference> {
    const expected = this.#seq + 1;
    this.#seq = seq;
    if (seq > expected) {
      const missing = seq - 1 === expected ? expected : `${expected} to ${seq - 1}`;
      yield { database: 'log', what: `change ${missing} is missing before ${seq}` };
    }
    if (change?.seq !== seq) {
      yield { database: 'log', what: `change ${seq} cannot be read, or has another seq` };
      return;
    }
    if (change.dtu_stored < this.#storedAt) {
      yield { database: 'log', what: `change ${seq} is older than the one before it` };
    }
    this.#storedAt = change.dtu_stored;
  }

  *#apply(rows: readonly CopiedRow[]): Iterable<Difference> {
    let plan: WritePlan;
    try {
      plan = planCopy(this.#reads, rows);
    } catch (error) {
      const [first, last] = [rows[0]?.change.seq, rows.at(-1)?.change.seq];
      const which = first === last ? `change ${first}` : `changes ${first} to ${last}`;
      const what = `${which} cannot follow the changes before: ${errorReason(error)}`;
      yield { database: 'log', what };
      return;
    }
    putWrites(this.copy, plan);
  }
}

function changeOf(text: string): Change | undefined {
  try {
    return parseJson(text) as Change;
  } catch {
    return undefined;
  }
}
