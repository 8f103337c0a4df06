import { statSync } from 'node:fs';
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
import { dataFile, folderFailure, inspectDataFile, prepareFolder, reasonOf } from './folder.ts';
import { markSeveral } from './place-values.ts';
import { CommitQueue } from './queue.ts';
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
}

/**
 * Opens the store of a data folder; several processes may have it open at once. Rejects with
 * `unavailable`, naming the folder, when that is a file, cannot be written, or holds the database
 * of another application or of a newer Waymark.
 */
export async function openStore({ folder, now, newId }: StoreParts): Promise<Store> {
  await prepareFolder(folder);
  await inspectDataFile(folder);
  const databases = await openMarked(folder);
  const reads = createReads(databases);
  const queue = new CommitQueue({ databases, reads, now, newId });
  const feed = new Feed(databases, reads);
  const deliveries = createDeliveryLog(databases, reads, { newId });
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
    verify: () => verifyData(databases),
    close() {
      feed.close();
      closing ??= Promise.all([queue.close(), deliveries.close()]).then(() =>
        databases.environment.close(),
      );
      return closing;
    },
  };
}

async function openMarked(folder: string): Promise<Databases> {
  let environment: RootDatabase | undefined;
  try {
    environment = openEnvironment(folder);
    refuseForeign(folder, environment);
    return makeDatabases(environment);
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

function entryCount(database: { getStats(): object }): number {
  return (database.getStats() as { entryCount: number }).entryCount;
}
