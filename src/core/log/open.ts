import { statSync } from 'node:fs';
import { link, mkdtemp, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { RootDatabase } from 'lmdb';
import { Failure } from '../values/failure.ts';
import {
  type Databases,
  applicationMark,
  extensibleVersions,
  openDatabases,
  openEnvironment,
  schemaVersion,
} from './databases.ts';
import { transactSync } from './environment.ts';
import {
  damageFailure,
  dataFile,
  errorReason,
  folderFailure,
  holdsData,
  inspectDataFile,
  isMissing,
  lockFile,
  prepareFolder,
} from './folder/data-folder.ts';
import { claimantPid } from './folder/folder-claim.ts';
import { checkInThread } from './folder/page-check.ts';
import { putIdentity } from './identity.ts';
import { keyFamily } from './key-family.ts';
import { createKeyUses } from './key-uses.ts';
import { openParts } from './part.ts';
import { createReads } from './reads.ts';
import { type DeliveryWriter, createLocalDeliveryWriter } from './shared/shared-log.ts';
import { sharedPlace } from './shared/shared-place.ts';
import { valuesOf } from './shared/shared-values.ts';
import { Snapshots } from './snapshot.ts';
import type { LogFamily, Reads, SharedPart, Store, StoreCounts } from './store.ts';
import { type LogWriter, createCommit, createLocalWriter } from './write/commit.ts';
import { LogFeed } from './write/feed.ts';
import { createTogether } from './write/together.ts';
import { type StoreCondition, WriteQueue } from './write/write-queue.ts';

interface StoreParts {
  /** Absolute path of the data folder; created if it is missing. */
  readonly folder: string;
  /** What modules keep in the log, in the order in which they upgrade older data. */
  readonly families: readonly LogFamily[];
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Ids of transactions: UUIDv7. */
  readonly newId: () => string;
  /** Whether to open read-only, for a folder that cannot be written. */
  readonly readOnly?: boolean;
  /**
   * Whether a process of another version may still use the folder: the store then refuses to change
   * the layout of older data.
   */
  readonly isInUse?: boolean;
  /** Called with the former and the new layout of older data, once that is changed. */
  readonly layoutChanged?: LayoutChanged | undefined;
  /** Joins the log that nodes share; by default, the folder has a log of its own. */
  readonly join?: JoinLog | undefined;
}

/** What a store has when it joins a log that nodes share. */
export interface OpenLog {
  readonly databases: Databases;
  readonly reads: Reads;
  readonly queue: WriteQueue;
  readonly condition: StoreCondition;
  /** Wakes all that wait for rows of the log. */
  readonly wake: () => void;
  readonly newId: () => string;
}

/** Makes a store a node that shares its log with others. */
export type JoinLog = (given: OpenLog) => Promise<{
  readonly writer: LogWriter & DeliveryWriter;
  readonly part: SharedPart;
  close(): Promise<void>;
}>;

/** Gets two versions of the layout of a data folder, the former one first. */
export type LayoutChanged = (from: number, to: number) => void;

/**
 * Opens the store of a data folder; several processes may have it open at once. Rejects with
 * `unavailable`, naming the folder, if it is a file, cannot be written, or holds a damaged database
 * or one of another application or of a newer Waymark; with `conflict` for a
 * folder that has another history than its shared log.
 */
export async function openStore({ folder, now, newId, ...given }: StoreParts): Promise<Store> {
  const { readOnly = false, isInUse = false, join: joinLog } = given;
  const families = [keyFamily, ...given.families];
  if (!readOnly) {
    await prepareFolder(folder);
    if (!(await holdsData(folder))) await createDataFile(folder, newId);
  }
  const opened = await inspectDataFile(folder, { readOnly });
  await requireLockFile(folder, { readOnly });
  const databases = await openMarked(folder, { ...given, families, readOnly, isInUse, newId });
  const reads = createReads(databases, families);
  const condition: StoreCondition = { refusal: undefined };
  const feed = new LogFeed(databases, reads);
  const wake = (): void => {
    feed.wake();
  };
  const queue = new WriteQueue(databases.environment, condition, wake);
  const shared = await joined({ databases, reads, queue, wake, newId, condition }, joinLog);
  const writer = shared?.writer ?? createLocalWriter(databases, queue);
  const commit = createCommit({ databases, reads, writer, now, newId });
  const held = { databases, reads, sharedCommit: shared && commit, now, newId };
  const snapshots = new Snapshots(databases);
  const pages = new PageChecks({ folder, databases, condition, isDone: opened.isComplete });
  const closing = new AbortController();
  const part = openParts({
    ...{ folder, databases, reads, queue, wake, newId, closing: closing.signal },
    writer: shared?.writer ?? createLocalDeliveryWriter(databases, queue),
    shared: shared?.part,
    checkPages: () => pages.check(),
  });
  let closed: Promise<void> | undefined;

  const store: Store = {
    ...reads,
    // lmdb reuses its read transaction until a timer of 1 ms fires.
    refresh: () => {
      databases.environment.resetReadTxn();
    },
    commit,
    together: createTogether(held, () => store),
    changesAfter: (families, seq, signal) => feed.next(families, seq, signal),
    waitForRows: (seq, signal, pollMs) => feed.waitForRows(seq, signal, pollMs),
    view: (view) => view(databases, families),
    inSnapshot: (read, view = createReads) => snapshots.run((then) => read(view(then, families))),
    part,
    keyUses: createKeyUses(databases, { queue }),
    shared: shared?.part,
    sharedPlace: () => sharedPlace(databases),
    sharedValues: valuesOf(databases),
    memory: () => feed.memory(),
    counts: () => countsOf(folder, databases, reads),
    checkPages: () => pages.check(),
    close() {
      feed.close();
      closing.abort();
      closed ??= closeAll(databases, { shared, queue, pages, snapshots });
      return closed;
    },
  };
  return store;
}

/** Refuses further writes at once; resolves when all is closed. */
async function closeAll(
  { environment }: Databases,
  {
    shared,
    queue,
    pages,
    snapshots,
  }: {
    readonly shared: Awaited<ReturnType<typeof joined>>;
    readonly queue: WriteQueue;
    readonly pages: PageChecks;
    readonly snapshots: Snapshots;
  },
): Promise<void> {
  // Without a shared log, the queue refuses writes at once.
  if (shared !== undefined) await shared.close();
  await Promise.all([queue.close(), pages.stop(), snapshots.close()]);
  await environment.close();
}

/** Joins the shared log of a store; undefined for a single machine. */
async function joined(
  given: OpenLog,
  joinLog: JoinLog | undefined,
): Promise<Awaited<ReturnType<JoinLog>> | undefined> {
  try {
    return await joinLog?.(given);
  } catch (error) {
    await given.databases.environment.close();
    throw error;
  }
}

/** Checks all pages of an open data file. */
class PageChecks {
  readonly #parts: PageCheckParts;
  readonly #stopping = new AbortController();
  #running: Promise<unknown> = Promise.resolve();

  constructor(parts: PageCheckParts) {
    this.#parts = parts;
  }

  /** @inheritdoc Store.checkPages. */
  async check(): Promise<void> {
    const { folder, databases, condition, isDone } = this.#parts;
    if (isDone) return;
    // LMDB does not reuse the pages of this snapshot during the check.
    const snapshot = databases.environment.useReadTransaction();
    const check = checkInThread(join(folder, dataFile), this.#stopping.signal).finally(() => {
      snapshot.done();
    });
    this.#running = Promise.allSettled([this.#running, check]);
    const { damage } = await check;
    if (damage === undefined) return;
    // A caller over the network must learn neither the path nor the content of the data.
    condition.refusal = new Failure(
      'unavailable',
      'The stored data is damaged, so changes are refused. The server log names the damaged place.',
    );
    throw damageFailure(folder, damage);
  }

  /** Cancels running checks; resolves when they have ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }
}

interface PageCheckParts {
  readonly folder: string;
  readonly databases: Databases;
  readonly condition: StoreCondition;
  /** Whether opening the file has checked all pages. */
  readonly isDone: boolean;
}

/**
 * Creates the data file as a draft and renames it. So an empty or incomplete data file is always a
 * damaged one.
 */
async function createDataFile(folder: string, newId: () => string): Promise<void> {
  let draft: string | undefined;
  try {
    draft = await mkdtemp(join(folder, '.new-'));
    const environment = openEnvironment(draft);
    try {
      makeDatabases(environment, { newId, families: [] });
    } finally {
      await environment.close();
    }
    await link(join(draft, dataFile), join(folder, dataFile));
  } catch (error) {
    // Another process has created it at the same time, or the path is a link.
    if ((error as NodeJS.ErrnoException).code === 'EEXIST' && (await holdsData(folder))) return;
    throw folderFailure(folder, `cannot be written (${errorReason(error)})`, error);
  } finally {
    if (draft !== undefined) await rm(draft, { recursive: true, force: true });
  }
}

/**
 * LMDB's lock file coordinates the processes of one data file. If it was removed while a server
 * runs, a second process would overwrite pages that the server reads.
 */
async function requireLockFile(
  folder: string,
  { readOnly }: { readonly readOnly: boolean },
): Promise<void> {
  const isThere = await stat(join(folder, lockFile)).then(
    () => true,
    (error: unknown) => !isMissing(error),
  );
  // A process that cannot write the lock file cannot register as a reader.
  if (isThere && !readOnly) return;
  const pid = await claimantPid(folder, 'serve');
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
    `has no ${lockFile} any more, but waymark (pid ${pid}) uses it: restart that process first`,
  );
}

type MakeParts = Pick<StoreParts, 'newId' | 'layoutChanged' | 'families'>;

async function openMarked(
  folder: string,
  {
    readOnly,
    isInUse,
    ...making
  }: MakeParts & { readonly readOnly: boolean; readonly isInUse: boolean },
): Promise<Databases> {
  let environment: RootDatabase | undefined;
  try {
    environment = openEnvironment(folder, { readOnly });
    refuseForeign(folder, environment, isInUse);
    return readOnly ? presentDatabases(folder, environment) : makeDatabases(environment, making);
  } catch (error) {
    await environment?.close();
    if (error instanceof Failure) throw error;
    throw folderFailure(folder, `cannot be opened (${errorReason(error)})`, error);
  }
}

function refuseForeign(folder: string, environment: RootDatabase, isInUse: boolean): void {
  if (environment.getKeysCount({ limit: 1 }) === 0) return;
  const unmarked = { name: 'meta', encoding: 'string', create: false } as const;
  // Without `create`, openDB returns undefined for a missing database.
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
  if (isInUse && schema !== schemaVersion) {
    throw folderFailure(
      folder,
      `has the layout ${schema}, and this version changes it to ${schemaVersion}, which it ` +
        'cannot do while the older version serves: stop the server, then start it',
    );
  }
}

/** All in one transaction, so that no other process finds an incomplete folder. */
function makeDatabases(
  environment: RootDatabase,
  { newId, layoutChanged, families }: MakeParts,
): Databases {
  let former = schemaVersion;
  const made = transactSync(environment, () => {
    const databases = openDatabases(environment);
    const { meta } = databases;
    if (meta.get('application') === undefined) meta.putSync('application', applicationMark);
    putIdentity(databases, newId());
    former = Number(meta.get('schema') ?? schemaVersion);
    for (const { upgrade } of families) upgrade?.(databases, former, families);
    if (meta.get('schema') !== String(schemaVersion)) {
      meta.putSync('schema', String(schemaVersion));
    }
    return databases;
  });
  if (former !== schemaVersion) layoutChanged?.(former, schemaVersion);
  return made;
}

/** Opens the databases without changes. Throws `unavailable` for an older layout. */
function presentDatabases(folder: string, environment: RootDatabase): Databases {
  const databases = openDatabases(environment);
  if (databases.meta.get('schema') === String(schemaVersion)) return databases;
  throw folderFailure(
    folder,
    'was written by an older version of waymark: start this version once with the right to write',
  );
}

function countsOf(folder: string, databases: Databases, reads: Reads): StoreCounts {
  return {
    seq: reads.seq(),
    rules: entryCount(databases.rule),
    keys: entryCount(databases.key),
    hooks: entryCount(databases.hook),
    tables: entryCount(databases.table),
    rows: entryCount(databases.row),
    bytes: statSync(join(folder, dataFile)).size,
  };
}

function entryCount(database: { getStats(): object }): number {
  return (database.getStats() as { entryCount: number }).entryCount;
}
