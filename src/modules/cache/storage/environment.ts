import { openSync } from 'node:fs';
import {
  type FileHandle,
  mkdir,
  open as openFile,
  open,
  readFile,
  readdir,
  rm,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import type { Database, RootDatabase } from 'lmdb';
import { openShared, transactSync } from '../../../core/log/environment.ts';
import {
  errorReason,
  inspectDataFile,
  prepareFolder,
} from '../../../core/log/folder/data-folder.ts';
import { silenceDiskFullErrors } from '../../../core/log/folder/full-disk.ts';
import { Failure } from '../../../core/values/failure.ts';

/** The name of the folder of content files in the cache folder. */
export const contentFolder = 'content';

/** The version of the layout below. A cache of another version is deleted. */
const schemaVersion = '2';

/** The databases of the cache. Their keys are ordered as texts and numbers. */
export interface CacheDatabases {
  readonly environment: RootDatabase;
  /** `epoch`, `version`, `bytes`, `answers`: numbers, see their uses. */
  readonly meta: Database<string, string>;
  /** Key of a URL → record, see record.ts. */
  readonly urls: Database<Buffer, string>;
  /** Id of a response → its content, if that is not in a file. */
  readonly content: Database<Buffer, string>;
  /** Id of a response whose content is in a file → nothing. */
  readonly files: Database<string, string>;
  /** Time of the last use in seconds, and id of a response → key of its URL. */
  readonly recency: Database<string, [number, string]>;
  /** Id of a page rule, and key of a URL that it has responses for → nothing. */
  readonly rules: Database<string, [string, string]>;
  /** Epoch → the purge that began it. */
  readonly journal: Database<string, number>;
}

/** The options of the log's environment, explained there, but without syncing. */
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

/** Records in which run of the machine the cache was open, and whether it was closed. */
const markFile = 'run';

/**
 * Opens the databases of a cache folder; several processes may do so at the same time. Only the
 * system decides when data reaches the disk: the cache stays whole when a process ends at any
 * moment, but not when the machine does (see prepareCacheFolder).
 */
export function openCacheDatabases(folder: string): CacheDatabases {
  silenceDiskFullErrors();
  const environment = openShared({ path: folder, ...environmentOptions });
  return transactSync(environment, () => ({
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
 * Prepares a cache folder: empties it if another version wrote it, if the machine ended while it
 * was open, or if it is damaged. No process may have it open. Rejects with `unavailable` if it is
 * not writable.
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

/**
 * Checks that a cache folder that another process has open can be shared with it. Rejects with
 * `unavailable` if that process is of a version with another layout.
 */
export async function requireSharedCache(folder: string): Promise<void> {
  const mark = await readFile(join(folder, markFile), 'utf8').catch(() => '');
  const [schema = ''] = mark.trim().split(' ');
  if (schema === schemaVersion) return;
  throw new Failure(
    'unavailable',
    `the cache folder ${folder} has the layout ${schema}, and this version changes it to ` +
      `${schemaVersion}, which it cannot do while the older version serves: stop the server, ` +
      'then start it',
  );
}

/** Empties a folder. Keeps the folder itself, which may be the root of a file system. */
async function emptyFolder(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    // ext4 creates this folder at the root of each file system.
    if (name !== 'lost+found') await rm(join(folder, name), { recursive: true, force: true });
  }
}

/**
 * Records whether the cache is open or was closed properly. Overwrites text of the same length,
 * which works on a full disk, too.
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

/** Identifies this run of the machine (on Linux). */
function thisRun(): Promise<string> {
  return readFile('/proc/sys/kernel/random/boot_id', 'utf8').then(
    (id) => id.trim(),
    () => 'unknown',
  );
}

/**
 * Prepares a cache folder before any process opens it, and deletes files that no response refers
 * to. Rejects with `unavailable` if it is not writable.
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
 * Records that all processes have closed the cache. If that cannot be recorded, the cache is
 * emptied after the next start of the machine.
 */
export async function settleCache(folder: string): Promise<void> {
  await markCacheFolder(folder, 'closed').catch(() => undefined);
}

/** The content files of responses, named by their ids. */
export interface ContentFiles {
  write(id: string, content: Buffer): Promise<void>;
  /** Creates a file for content that is still arriving. */
  create(id: string): Promise<FileHandle>;
  /** Opens a file for reading: a descriptor, or undefined if it does not exist. */
  open(id: string): number | undefined;
  /** Deletes files; ignores those that do not exist. */
  remove(ids: readonly string[]): Promise<void>;
  /** The ids of all files. */
  list(): Promise<readonly string[]>;
}

/** Content files in subfolders named by the last two characters of their ids. */
export function createContentFiles(folder: string): ContentFiles {
  const folderOf = (id: string): string => join(folder, id.slice(-2));
  const pathOf = (id: string): string => join(folderOf(id), id);

  async function create(id: string): Promise<FileHandle> {
    try {
      return await open(pathOf(id), 'wx+', 0o600);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      await mkdir(folderOf(id), { recursive: true, mode: 0o700 });
      return open(pathOf(id), 'wx+', 0o600);
    }
  }

  return {
    create,
    async write(id, content) {
      const handle = await create(id);
      try {
        await writeFile(handle, content);
      } catch (error) {
        // The capacity would not count an incomplete file.
        await rm(pathOf(id), { force: true });
        throw error;
      } finally {
        await handle.close();
      }
    },
    open(id) {
      try {
        return openSync(pathOf(id), 'r');
      } catch {
        return undefined;
      }
    },
    async remove(ids) {
      await Promise.all(ids.map((id) => rm(pathOf(id), { force: true })));
    },
    async list() {
      const folders = await readdir(folder).catch(() => []);
      const lists = await Promise.all(folders.map((name) => readdir(join(folder, name))));
      return lists.flat();
    },
  };
}
