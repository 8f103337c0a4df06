import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Database } from 'lmdb';
import type { Change } from '../../../core/log/change.ts';
import { type Databases, openDatabases, openEnvironment } from '../../../core/log/databases.ts';
import { storedJson } from '../../../core/log/encoding.ts';
import { transactSync } from '../../../core/log/environment.ts';
import { dataFile, isMissing, lockFile } from '../../../core/log/folder/data-folder.ts';
import { isKeyUse } from '../../../core/log/key-uses.ts';
import { copyBatchEntries } from '../../../core/log/limits.ts';
import { isLoginEntry } from '../../login/stored-sessions.ts';
import { syncPath } from '../../upkeep/backup.ts';
import { latestAttempt } from '../../webhooks/log/attempts.ts';
import { dueOf, nOf, queueOf } from '../../webhooks/log/deliveries.ts';
import { entryOfSeq, putLostEntries } from './outbox-entries.ts';

/** The folder inside a data folder in which a node copies the log of its centre again. */
export const copyFolder = '.copy';

/** The file in it that says that the copy is complete. */
export const completeMark = 'complete';

/** The databases that belong to the node and not to the log that it copies. */
const ownDatabases = ['node', 'outbox', 'outboxvk'] as const satisfies readonly (keyof Databases)[];
/** What the database `delivery` has besides the process that delivered last. */
const deliveryMembers = ['entry', 'clock', 'outages'];

/**
 * Carries over what belongs to a node to a new copy of the log of its centre: its outbox, the
 * queues of hooks with the attempts, the nodes that follow it, sessions of keys and of visitors,
 * and the last use of keys. Repeating it does no harm.
 */
export function carryOver(source: Databases, target: Databases): void {
  for (const name of ownDatabases) carry(source, target, name);
  transactSync(target.environment, () => {
    for (const { key, value } of source.meta.getRange({})) {
      const name = String(key);
      const isSession = name === 'sessions' || isLoginEntry(name);
      const isOwn = name.startsWith('outbox') || isSession || isKeyUse(name);
      if (isOwn) target.meta.putSync(key, value);
    }
    putLostEntries(source, target);
  });
  carryQueues(source, target);
}

/**
 * The node goes on delivering where it was. What names a row that the new log does not have is left
 * out, because the centre has lost it: the numbers of its messages are missing then.
 */
function carryQueues(source: Databases, target: Databases): void {
  const newest = Number(source.meta.get('seq') ?? 0);
  const common = commonRows(source, target, newest);
  const hasQueue = (key: Uint8Array): boolean => queueOf(key) <= common;
  const hasEvent = (seq: number): boolean => entryOfSeq(seq) !== undefined || seq <= common;
  const hasMessage = (key: Uint8Array, n: number): boolean => {
    if (common === newest || !hasQueue(key)) return hasQueue(key);
    const { logSeqs = [] } = latestAttempt(source, queueOf(key), n) ?? {};
    return logSeqs.every(hasEvent);
  };
  carry(source, target, 'lane', (queue) => queue <= common);
  carry(source, target, 'job', (seq) => seq <= common);
  carry(source, target, 'pending', (key, seq) => hasQueue(key) && hasEvent(Number(seq)));
  carry(source, target, 'attempt', (key) => hasMessage(key, nOf(key)));
  carry(source, target, 'exhausted', (key) => hasMessage(key, nOf(key)));
  carry(source, target, 'due', (key) => hasMessage(key, dueOf(key).n));
  transactSync(target.environment, () => {
    for (const name of deliveryMembers) {
      const value = source.delivery.get(name);
      if (value !== undefined) target.delivery.putSync(name, value);
    }
    const cursor = source.delivery.get('cursor');
    if (cursor === undefined) return;
    target.delivery.putSync('cursor', String(Math.min(Number(cursor), common)));
  });
}

/** The seq up to which two logs have the same rows: each has the beginning of one log. */
function commonRows(one: Databases, other: Databases, newest: number): number {
  let [same, different] = [0, newest + 1];
  while (different - same > 1) {
    const middle = Math.floor((same + different) / 2);
    const txn = txnAt(one, middle);
    if (txn !== undefined && txn === txnAt(other, middle)) same = middle;
    else different = middle;
  }
  return same;
}

function txnAt({ log }: Databases, seq: number): string | undefined {
  const text = log.get(seq);
  return text === undefined ? undefined : (storedJson(text) as Change).txn;
}

type KeyOf<Name extends keyof Databases> =
  Databases[Name] extends Database<string, infer Key> ? Key : never;

/** Copies the entries of a database that `keeps` names, in transactions of some at a time. */
function carry<Name extends Exclude<keyof Databases, 'environment'>>(
  source: Databases,
  target: Databases,
  name: Name,
  keeps: (key: KeyOf<Name>, value: string) => boolean = () => true,
): void {
  // Both sides encode keys the same way, and all values are texts.
  const [from, to] = [source[name], target[name]] as readonly unknown[] as readonly [
    Database<string, KeyOf<Name> & Uint8Array>,
    Database<string, KeyOf<Name> & Uint8Array>,
  ];
  const entries = from.getRange({})[Symbol.iterator]();
  const carrySome = (): boolean => {
    for (let count = 0; count < copyBatchEntries; count += 1) {
      const next = entries.next();
      if (next.done === true) return true;
      const { key, value } = next.value;
      if (keeps(key, value)) to.putSync(key, value);
    }
    return false;
  };
  while (!transactSync(target.environment, carrySome));
}

/**
 * Replaces the data of a folder by a complete copy inside it (docs/design/nodes.md), if there is
 * one; resolves to whether there was. The caller has claimed the folder. Repeating it after a crash
 * completes it.
 */
export async function replaceWithCopy(folder: string): Promise<boolean> {
  const copy = join(folder, copyFolder);
  if (!(await isThere(join(copy, completeMark)))) return false;
  if (await isThere(join(copy, dataFile))) {
    await carryInto(copy, folder);
    await syncPath(join(copy, dataFile));
    await rm(join(folder, lockFile), { force: true });
    await rename(join(copy, dataFile), join(folder, dataFile));
    await syncPath(folder);
  }
  await rm(copy, { recursive: true, force: true });
  return true;
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

async function carryInto(copy: string, folder: string): Promise<void> {
  const [from, to] = [openEnvironment(folder), openEnvironment(copy)];
  try {
    const source = transactSync(from, () => openDatabases(from));
    const target = transactSync(to, () => openDatabases(to));
    carryOver(source, target);
  } finally {
    await Promise.all([from.close(), to.close()]);
  }
}
