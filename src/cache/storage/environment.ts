import { open as openFile, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { open, type Database, type RootDatabase } from 'lmdb';
import { Failure } from '../../model/failure.ts';
import { inspectDataFile, prepareFolder, errorReason } from '../../store/folder/data-folder.ts';
import { silenceDiskFullErrors } from '../../store/folder/full-disk.ts';
import { contentFolder, createContentFiles } from './files.ts';

/** Version of the layout below: what another one has written is thrown away. */
const schemaVersion = '2';

/** The databases of the cache; keys are ordered as their texts and numbers are. */
export interface CacheDatabases {
  readonly environment: RootDatabase;
  /** `epoch`, `version`, `bytes`, `answers`: numbers, see their uses. */
  readonly meta: Database<string, string>;
  /** Key of a URL → record, see record.ts. */
  readonly urls: Database<Buffer, string>;
  /** Id of an answer → its content, where that is not in a file. */
  readonly content: Database<Buffer, string>;
  /** Id of an answer whose content is in a file → nothing. */
  readonly files: Database<string, string>;
  /** Seconds of its last use and id of an answer → key of its URL. */
  readonly recency: Database<string, [number, string]>;
  /** Id of a page rule and key of a URL that it has answers for → nothing. */
  readonly rules: Database<string, [string, string]>;
  /** Epoch → purge that began it. */
  readonly journal: Database<string, number>;
}

/** As those of the log's environment, see there, but for the syncing. */
const environmentOptions = {
  noSubdir: false,
  maxDbs: 16,
  noSync: true,
  overlappingSync: false,
  eventTurnBatching: false,
  mapSize: 2 ** 30,
  permissionsMode: 0o600,
  encoding: 'string',
} as const;

/** Name of the file that says in which run of the machine the cache was written, and its end. */
const markFile = 'run';

/**
 * Opens the databases of a cache folder, which several processes may have open at once. Nothing is
 * flushed to the disk before the system does so by itself: what the end of a process leaves behind
 * is whole, what the end of the machine does may not be, see prepareCacheFolder.
 */
export function openCacheDatabases(folder: string): CacheDatabases {
  silenceDiskFullErrors();
  const environment = open({ path: folder, ...environmentOptions });
  return environment.transactionSync(() => ({
    environment,
    meta: environment.openDB<string, string>('meta', { encoding: 'string' }),
    urls: environment.openDB<Buffer, string>('urls', { encoding: 'binary' }),
    content: environment.openDB<Buffer, string>('content', { encoding: 'binary' }),
    files: environment.openDB<string, string>('files', { encoding: 'string' }),
    recency: environment.openDB<string, [number, string]>('recency', { encoding: 'string' }),
    rules: environment.openDB<string, [string, string]>('rules', { encoding: 'string' }),
    journal: environment.openDB<string, number>('journal', { encoding: 'string' }),
  }));
}

/**
 * Makes a cache folder ready to be opened: what was left there by another version, or by a run of
 * the machine that ended without the cache being closed, is thrown away, as is what is damaged. No
 * process may have it open. Rejects with `unavailable` where it cannot be written.
 */
async function prepareCacheFolder(folder: string): Promise<void> {
  await prepareFolder(folder);
  const mark = await readFile(join(folder, markFile), 'utf8').catch(() => '');
  const [schema, run, end] = mark.trim().split(' ');
  const isSound = schema === schemaVersion && (run === (await thisRun()) || end === 'closed');
  try {
    if (!isSound || !(await isWhole(folder))) await emptyFolder(folder);
    await markCacheFolder(folder, 'open');
  } catch (error) {
    throw new Failure(
      'unavailable',
      `the cache folder ${folder} cannot be used: ${errorReason(error)}`,
      {
        cause: error,
      },
    );
  }
}

/** Removes what is in a folder, and not the folder: it may be the root of a file system. */
async function emptyFolder(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    // ext4 has a folder at the root of each file system, which it makes again itself.
    if (name !== 'lost+found') await rm(join(folder, name), { recursive: true, force: true });
  }
}

/**
 * Notes whether the cache in a folder was closed in good order: over what was noted before, of the
 * same length, so that it takes no room on a full disk.
 */
async function markCacheFolder(folder: string, end: 'open' | 'closed'): Promise<void> {
  const text = `${schemaVersion} ${await thisRun()} ${end.padEnd('closed'.length)}\n`;
  const path = join(folder, markFile);
  const file = await openFile(path, 'r+').catch(() => openFile(path, 'w'));
  try {
    await file.write(text, 0);
    await file.truncate(Buffer.byteLength(text));
  } finally {
    await file.close();
  }
}

function isWhole(folder: string): Promise<boolean> {
  return inspectDataFile(folder).then(
    () => true,
    () => false,
  );
}

/** What tells this run of the machine from another one, where the system says it (Linux). */
function thisRun(): Promise<string> {
  return readFile('/proc/sys/kernel/random/boot_id', 'utf8').then(
    (id) => id.trim(),
    () => 'unknown',
  );
}

/**
 * Makes the folder ready before any process opens the cache in it: sound, and without files that
 * nothing refers to. Rejects with `unavailable` where it cannot be written.
 */
export async function prepareCache(folder: string): Promise<void> {
  await prepareCacheFolder(folder);
  const databases = openCacheDatabases(folder);
  try {
    const files = createContentFiles(join(folder, contentFolder));
    const ids = await files.list();
    await files.remove(ids.filter((id) => !databases.files.doesExist(id)));
  } finally {
    await databases.environment.close();
  }
}

/**
 * Notes that no process has the cache in a folder open any more, and that it is whole. Where that
 * cannot be noted, what is in it is not believed after the next start of the machine.
 */
export async function settleCache(folder: string): Promise<void> {
  await markCacheFolder(folder, 'closed').catch(() => undefined);
}
