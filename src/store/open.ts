import { statSync } from 'node:fs';
import { link, mkdtemp, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { RootDatabase } from 'lmdb';
import { Failure } from '../model/failure.ts';
import { backUp } from './backup.ts';
import {
  applicationMark,
  extensibleVersions,
  markedVersion,
  openDatabases,
  openEnvironment,
  schemaVersion,
  type Databases,
} from './databases.ts';
import { createDeliveryLog } from './delivery-log.ts';
import { Feed } from './feed.ts';
import {
  damageFailure,
  dataFile,
  folderFailure,
  holdsData,
  inspectDataFile,
  isMissing,
  lockFile,
  prepareFolder,
  reasonOf,
} from './folder.ts';
import { claimantOf } from './lock.ts';
import { checkInThread } from './page-check-thread.ts';
import { markSeveral } from './place-values.ts';
import { CommitQueue, type StoreCondition } from './queue.ts';
import { createReads } from './reads.ts';
import type { Store } from './store.ts';
import { verifyData } from './verify.ts';

interface StoreParts {
  /** Absolute path of the data folder; made where it is missing. */
  readonly folder: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Ids of transactions: UUIDv7. */
  readonly newId: () => string;
  /** Whether nothing is to be written: for a folder that cannot be. */
  readonly readOnly?: boolean;
}

/**
 * Opens the store of a data folder; several processes may have it open at once. Rejects with
 * `unavailable`, naming the folder, when that is a file, cannot be written, holds the database of
 * another application or of a newer Waymark, or a damaged one.
 */
export async function openStore({ folder, now, newId, ...given }: StoreParts): Promise<Store> {
  const { readOnly = false } = given;
  if (!readOnly) {
    await prepareFolder(folder);
    if (!(await holdsData(folder))) await createDataFile(folder);
  }
  const opened = await inspectDataFile(folder, { readOnly });
  await requireLockFile(folder, { readOnly });
  const databases = await openMarked(folder, { readOnly });
  const reads = createReads(databases);
  const condition: StoreCondition = { refusal: undefined };
  const queue = new CommitQueue({ databases, reads, now, newId, condition });
  const feed = new Feed(databases, reads);
  const deliveries = createDeliveryLog(databases, reads, { newId, condition });
  const pages = new PageChecks({ folder, databases, condition, isDone: opened.isComplete });
  let closing: Promise<void> | undefined;

  return {
    ...reads,
    // lmdb reads on from what it has begun to read until a timer of 1 ms has its turn.
    refresh: () => {
      databases.environment.resetReadTxn();
    },
    async commit(by, decide) {
      const answer = await queue.commit(by, decide);
      feed.look();
      return answer;
    },
    changesAfter: (seq, signal) => feed.next(seq, signal),
    grown: (seq, signal, pollMs) => feed.grown(seq, signal, pollMs),
    deliveries,
    memory: () => feed.memory(),
    counts: () => ({
      seq: reads.seq(),
      rules: entryCount(databases.rule),
      keys: entryCount(databases.key),
      hooks: entryCount(databases.hook),
      bytes: statSync(join(folder, dataFile)).size,
    }),
    backUp: (target, signal) => backUp(databases, { target, signal }),
    checkPages: () => pages.check(),
    async *verify() {
      await pages.check();
      yield* verifyData(databases);
    },
    close() {
      feed.close();
      closing ??= Promise.all([queue.close(), deliveries.close(), pages.stop()]).then(() =>
        databases.environment.close(),
      );
      return closing;
    },
  };
}

/** The checks of all pages of a data file that is open. */
class PageChecks {
  readonly #parts: PageCheckParts;
  readonly #stopping = new AbortController();
  #running: Promise<unknown> = Promise.resolve();

  constructor(parts: PageCheckParts) {
    this.#parts = parts;
  }

  /** Store.checkPages: see there. */
  async check(): Promise<void> {
    const { folder, databases, condition, isDone } = this.#parts;
    if (isDone) return;
    // Nothing that this snapshot refers to is used again meanwhile.
    const snapshot = databases.environment.useReadTransaction();
    const check = checkInThread(join(folder, dataFile), this.#stopping.signal).finally(() => {
      snapshot.done();
    });
    this.#running = Promise.allSettled([this.#running, check]);
    const { damage } = await check;
    if (damage === undefined) return;
    // A caller over the network learns neither where the data is nor what is in it.
    condition.refusal = new Failure(
      'unavailable',
      'The stored data is damaged, and takes no changes. The log of the server says where.',
    );
    throw damageFailure(folder, damage);
  }

  /** Ends those under way; resolves when they have ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }
}

interface PageCheckParts {
  readonly folder: string;
  readonly databases: Databases;
  readonly condition: StoreCondition;
  /** Whether all pages were looked at when the file was opened. */
  readonly isDone: boolean;
}

/**
 * Makes the data file beside its place, and puts it there in one step: one that is found empty or
 * half made has been damaged.
 */
async function createDataFile(folder: string): Promise<void> {
  let draft: string | undefined;
  try {
    draft = await mkdtemp(join(folder, '.new-'));
    const environment = openEnvironment(draft);
    try {
      makeDatabases(environment);
    } finally {
      await environment.close();
    }
    await link(join(draft, dataFile), join(folder, dataFile));
  } catch (error) {
    // Another process has made it at the same time, or a link stands there.
    if ((error as NodeJS.ErrnoException).code === 'EEXIST' && (await holdsData(folder))) return;
    throw folderFailure(folder, `cannot be written (${reasonOf(error)})`, error);
  } finally {
    if (draft !== undefined) await rm(draft, { recursive: true, force: true });
  }
}

/**
 * LMDB's lock file is how processes with one data file know of each other: where it has been
 * removed under a server, a second process would write over what that one reads.
 */
async function requireLockFile(
  folder: string,
  { readOnly }: { readonly readOnly: boolean },
): Promise<void> {
  const isThere = await stat(join(folder, lockFile)).then(
    () => true,
    (error: unknown) => !isMissing(error),
  );
  // Without leave to write it, this process cannot tell the other one that it reads.
  if (isThere && !readOnly) return;
  const pid = await claimantOf(folder, 'serve');
  if (pid === undefined || pid === process.pid) return;
  if (readOnly) {
    throw folderFailure(
      folder,
      `is in use by waymark (pid ${pid}) and cannot be written: ` +
        'run this as the user of that process',
    );
  }
  throw folderFailure(
    folder,
    `has lost its ${lockFile} while waymark (pid ${pid}) uses it: restart that process first`,
  );
}

async function openMarked(
  folder: string,
  { readOnly }: { readonly readOnly: boolean },
): Promise<Databases> {
  let environment: RootDatabase | undefined;
  try {
    environment = openEnvironment(folder, { readOnly });
    refuseForeign(folder, environment);
    return readOnly ? presentDatabases(folder, environment) : makeDatabases(environment);
  } catch (error) {
    await environment?.close();
    if (error instanceof Failure) throw error;
    throw folderFailure(folder, `cannot be opened (${reasonOf(error)})`, error);
  }
}

function refuseForeign(folder: string, environment: RootDatabase): void {
  if (environment.getKeysCount({ limit: 1 }) === 0) return;
  const unmarked = { name: 'meta', encoding: 'string', create: false } as const;
  // Without `create`, openDB gives undefined for a database that is not there.
  const meta = environment.openDB<string, string>(unmarked) as
    | ReturnType<typeof environment.openDB<string, string>>
    | undefined;
  if (meta?.get('application') !== applicationMark) {
    throw folderFailure(folder, 'holds the database of another application');
  }
  const schema = Number(meta.get('schema'));
  if (schema !== schemaVersion && !extensibleVersions.includes(schema)) {
    throw folderFailure(
      folder,
      `was written by another version of waymark (schema ${schema}, this one has ${schemaVersion})`,
    );
  }
}

/** All in one transaction, so that no other process finds a folder half made. */
function makeDatabases(environment: RootDatabase): Databases {
  return environment.transactionSync(() => {
    const databases = openDatabases(environment);
    const { meta } = databases;
    if (meta.get('application') === undefined) meta.putSync('application', applicationMark);
    const schema = Number(meta.get('schema') ?? schemaVersion);
    if (schema < markedVersion) markSeveral(databases);
    if (meta.get('schema') !== String(schemaVersion)) {
      meta.putSync('schema', String(schemaVersion));
    }
    return databases;
  });
}

/** The databases as they are. Throws `unavailable` for an older layout. */
function presentDatabases(folder: string, environment: RootDatabase): Databases {
  const databases = openDatabases(environment);
  if (databases.meta.get('schema') === String(schemaVersion)) return databases;
  throw folderFailure(
    folder,
    'was written by an older version of waymark: open it once where it can be written',
  );
}

function entryCount(database: { getStats(): object }): number {
  return (database.getStats() as { entryCount: number }).entryCount;
}
