import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Database } from 'lmdb';
import type { Change } from '../../core/log/change.ts';
import { type Databases, openDatabases, openEnvironment } from '../../core/log/databases.ts';
import { storedJson } from '../../core/log/encoding.ts';
import { transactSync } from '../../core/log/environment.ts';
import {
  dataFile,
  errorReason,
  folderFailure,
  lockFile,
} from '../../core/log/folder/data-folder.ts';
import { claimFolder } from '../../core/log/folder/folder-claim.ts';
import { writeErrorOf } from '../../core/log/folder/full-disk.ts';
import { checkPages, newestTransaction } from '../../core/log/folder/page-check.ts';
import { purgedValue, replaceFormerSecrets } from '../../core/log/former-headers.ts';
import { copyFailure } from '../../core/log/identity.ts';
import { copyBatchEntries } from '../../core/log/limits.ts';
import { createReads } from '../../core/log/reads.ts';
import { sharedFailure } from '../../core/log/shared/shared-place.ts';
import type { LogFamily, Reads, Store } from '../../core/log/store.ts';
import { Failure } from '../../core/values/failure.ts';
import { changeInDraft } from '../drafts/draft.ts';
import { createDraftReads } from '../drafts/log/draft-reads.ts';
import { rowLogPart } from '../nodes/log/open-row-log.ts';
import { type HookSecret, hookOfSecret } from '../webhooks/hook.ts';
import { syncPath } from './backup.ts';
import { storedDrafts } from '../drafts/log/family.ts';
import { storedHooks } from '../webhooks/log/family.ts';
import { storedRules } from '../rules/log/family.ts';

/** … and bytes of them. */
const copyBatchBytes = 64 * 2 ** 20;

/** The dependencies and the target of a purge. */
interface PurgeParts {
  /** Absolute path of a data folder that no server uses. */
  readonly folder: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly newId: () => string;
  readonly openStore: (folder: string) => Promise<Store>;
  /** The author of the purge in the log. */
  readonly by: string;
  /** Decides by id whether to purge a page rule or a hook. */
  readonly selects: (id: string) => boolean;
  /** Whether to write nothing and only report. */
  readonly dryRun: boolean;
}

/** The result of a purge. */
interface PurgeReport {
  /** Seqs of the rows that had a former secret. */
  readonly rows: readonly number[];
  /** Seq of the log row that records the purge; undefined if nothing was written. */
  readonly seq: number | undefined;
}

/**
 * Removes former secrets from a data folder: header values that page rules and hooks no longer
 * have, and secrets that no longer sign. It copies everything else, row by row, to a new data file,
 * which replaces the old one, so no page of the old file remains. Rejects with `conflict`, without
 * changes, while a server runs or if another process has written meanwhile
 * (docs/design/history.md#former-secrets).
 */
export async function purgeSecrets(parts: PurgeParts): Promise<PurgeReport> {
  const { folder, selects, now, openStore, dryRun } = parts;
  const claim = await claimFolder(folder, { pid: process.pid });
  try {
    // Refuses damaged and foreign data, and upgrades an older layout.
    const store = await openStore(folder);
    const { families } = store;
    const { follows } = store.part(rowLogPart).identity();
    const place = store.sharedPlace();
    await store.close();
    if (follows !== undefined) throw copyFailure(follows);
    if (place !== undefined) throw sharedFailure();
    const environment = openEnvironment(folder);
    let draft: string | undefined;
    try {
      const databases = transactSync(environment, () => openDatabases(environment));
      const purge = new Purge(databases, families, { selects, nowMs: now() });
      const rows = purge.rows();
      if (dryRun || rows.length === 0) return { rows, seq: undefined };
      const before = transactionIn(folder);
      await removeDrafts(folder);
      draft = await mkdtemp(join(folder, draftPrefix));
      await writeCopy(draft, { folder, databases, purge });
      const seq = await recordPurge(draft, parts, rows);
      await swap(folder, draft, before);
      return { rows, seq };
    } finally {
      await environment.close();
      if (draft !== undefined) await rm(draft, { recursive: true, force: true });
    }
  } catch (error) {
    throw await purgeFailure(folder, error);
  } finally {
    await claim.release();
  }
}

const draftPrefix = '.purge-';

/** Removes the drafts of purges that were killed. */
async function removeDrafts(folder: string): Promise<void> {
  const drafts = (await readdir(folder)).filter((name) => name.startsWith(draftPrefix));
  for (const name of drafts) await rm(join(folder, name), { recursive: true, force: true });
}

async function purgeFailure(folder: string, error: unknown): Promise<Failure> {
  const cause = await writeErrorOf(error);
  if (cause instanceof Failure) return cause;
  return folderFailure(folder, `cannot be purged (${errorReason(cause)})`, cause);
}

/** The purged form of the rows and secrets of a data folder. */
class Purge {
  readonly #databases: Databases;
  readonly #families: readonly LogFamily[];
  readonly #reads: Reads;
  readonly #selects: (id: string) => boolean;
  readonly #nowMs: number;
  /** The new text of each changed row. */
  readonly #changed = new Map<number, string>();

  constructor(
    databases: Databases,
    families: readonly LogFamily[],
    { selects, nowMs }: { readonly selects: (id: string) => boolean; readonly nowMs: number },
  ) {
    this.#databases = databases;
    this.#families = families;
    this.#reads = createReads(databases, families);
    this.#selects = selects;
    this.#nowMs = nowMs;
  }

  /** Returns the seqs of the rows that hold a former secret. */
  rows(): readonly number[] {
    for (const { key, value } of this.#databases.log.getRange({})) {
      // Most rows hold no header values and are not parsed.
      if (!value.includes('"headers"') && !value.includes('"family":"secret"')) continue;
      const change = storedJson(value) as Change;
      const purged = this.#purged(change);
      if (purged !== change) this.#changed.set(key, JSON.stringify(purged));
    }
    return [...this.#changed.keys()];
  }

  /** The value of an entry as the copy has it. */
  valueOf(name: string, key: unknown, value: string): string {
    if (name === 'log') return this.#changed.get(key as number) ?? value;
    return name === 'hooksecret' ? this.#secretOf(key as Uint8Array, value) : value;
  }

  #purged(change: Change): Change {
    const inside = changeInDraft(change);
    if (inside === undefined) return this.#purgedIn(change, this.#reads);
    const draft = this.#reads.of(storedDrafts).draft(inside.draft);
    // An open draft shows its own values; those of one that has ended count only if they are live.
    const isOpen = draft?.state === 'open';
    const reads = isOpen ? createDraftReads(this.#databases, this.#families, draft) : this.#reads;
    const purged = this.#purgedIn(inside.change, reads);
    if (purged === inside.change) return change;
    return { ...change, data: { ...change.data, data: purged.data } };
  }

  #purgedIn<C extends Change>(change: C, reads: Reads): C {
    const { family, id, data } = change;
    const hookId = family === 'secret' ? hookOfSecret(id) : id;
    if (!this.#selects(hookId)) return change;
    if (family === 'userinterface')
      return withoutFormer(change, reads.of(storedRules).rule(id)?.rule);
    if (family === 'webhook') return withoutFormer(change, reads.of(storedHooks).hook(id)?.hook);
    if (family !== 'secret') return change;
    const kept = [purgedValue, ...this.#secretsInUse(hookId, reads)];
    if (kept.includes((data as unknown as HookSecret).secret)) return change;
    return { ...change, data: { ...data, secret: purgedValue } };
  }

  /** The newest secret, also of a deleted hook, because the deletion can be undone. */
  #secretsInUse(hookId: string, reads = this.#reads): readonly string[] {
    const {
      secret,
      previous,
      until = '',
    } = reads.of(storedHooks).hookSecret(hookId) ?? { secret: '' };
    const isOver = !(Date.parse(until) > this.#nowMs);
    return previous === undefined || isOver ? [secret] : [secret, previous];
  }

  #secretOf(key: Uint8Array, value: string): string {
    const { secret, previous } = storedJson(value) as HookSecret;
    if (previous === undefined) return value;
    // The same result as the fold of the purged rows.
    const hookId = Buffer.from(key).toString();
    const isKept = !this.#selects(hookId) || this.#secretsInUse(hookId).includes(previous);
    return isKept ? value : JSON.stringify({ secret });
  }
}

/**
 * Replaces header values that the record no longer has with a mark; returns the same row if it has
 * none.
 */
function withoutFormer<C extends Change>(change: C, current: object | undefined): C {
  const data = replaceFormerSecrets(
    change.data,
    current === undefined ? [] : [current],
    purgedValue,
  );
  return data === change.data ? change : { ...change, data };
}

/** Writes all entries of a data folder into a new one, in the order of their keys. */
async function writeCopy(
  draft: string,
  {
    folder,
    databases,
    purge,
  }: { readonly folder: string; readonly databases: Databases; readonly purge: Purge },
): Promise<void> {
  const { size } = await stat(join(folder, dataFile));
  const environment = openEnvironment(draft, { mapSize: mapSizePerByte * size + mapSizeMin });
  try {
    const copies = transactSync(environment, () => openDatabases(environment));
    for (const name of Object.keys(copies) as readonly (keyof Databases)[]) {
      if (name === 'environment') continue;
      // All databases have texts as values, and both sides encode keys the same way.
      const [source, copy] = [databases[name], copies[name]] as unknown as readonly [
        Database<string, Uint8Array>,
        Database<string, Uint8Array>,
      ];
      const put = (some: () => boolean) => transactSync(environment, some);
      copyEntries(source, { copy, put }, (key, value) => purge.valueOf(name, key, value));
      if (entryCount(copy) !== entryCount(source)) {
        throw new Error(
          `${name} has ${entryCount(source)} entries, but its copy has ${entryCount(copy)}`,
        );
      }
    }
  } finally {
    await environment.close();
  }
}

/** Address space for the copy, which is smaller because its pages are filled in key order. */
const mapSizePerByte = 2;
const mapSizeMin = 2 ** 30;

function copyEntries(
  source: Database<string, Uint8Array>,
  {
    copy,
    put,
  }: {
    readonly copy: Database<string, Uint8Array>;
    /** Runs a write transaction on the copy. */
    readonly put: (some: () => boolean) => boolean;
  },
  valueOf: (key: Uint8Array, value: string) => string,
): void {
  const entries = source.getRange({})[Symbol.iterator]();
  const copySome = (): boolean => {
    let bytes = 0;
    for (let count = 0; count < copyBatchEntries && bytes < copyBatchBytes; count += 1) {
      const next = entries.next();
      if (next.done === true) return true;
      const { key, value } = next.value;
      copy.putSync(key, valueOf(key, value));
      bytes += value.length;
    }
    return false;
  };
  while (!put(copySome));
}

function entryCount(database: { getStats(): object }): number {
  return (database.getStats() as { entryCount: number }).entryCount;
}

/** Adds a row to the log that records the purge. Resolves to its seq. */
async function recordPurge(
  draft: string,
  { openStore, newId, by }: PurgeParts,
  rows: readonly number[],
): Promise<number> {
  const store = await openStore(draft);
  try {
    // Copies of the log on other nodes have the purged values, too: they copy it again.
    await store.part(rowLogPart).renew(newId());
    return await store.commit(by, () => ({
      drafts: [{ family: 'purge', id: newId(), action: 'insert', data: { rows } }],
      answer: ([change]) => change?.seq ?? 0,
    }));
  } finally {
    await store.close();
  }
}

/** Replaces the old data file with the new one, unless the old one was written meanwhile. */
async function swap(folder: string, draft: string, before: bigint | undefined): Promise<void> {
  const file = join(draft, dataFile);
  const [lock, aside] = [join(folder, lockFile), join(draft, 'former-lock')];
  await syncPath(file);
  const fd = openSync(file, 'r');
  const { damage } = checkPages(fd);
  closeSync(fd);
  if (damage !== undefined) throw new Error(`the copy is damaged: ${damage}`);
  // Without the lock file no other process opens the folder: see requireLockFile.
  await rename(lock, aside);
  if (transactionIn(folder) !== before) {
    await rename(aside, lock);
    throw new Failure(
      'conflict',
      `another process has written to ${folder} meanwhile: nothing was purged. ` +
        'Run the command again while no other process uses the data.',
    );
  }
  await rename(file, join(folder, dataFile));
  await syncPath(folder);
}

function transactionIn(folder: string): bigint | undefined {
  const fd = openSync(join(folder, dataFile), 'r');
  try {
    return newestTransaction(fd);
  } finally {
    closeSync(fd);
  }
}
