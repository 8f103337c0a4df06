import { link, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Failure } from '../model/failure.ts';
import { folderFailure, isMissing, prepareFolder, reasonOf } from './folder.ts';

/** A data folder that one serving process has for itself. */
export interface FolderClaim {
  /** Lets others have the folder. */
  release(): Promise<void>;
}

interface Claimant {
  readonly pid: number;
  /**
   * What tells the process from a later one of the same pid; its start time where the system says
   * it (Linux), unless given.
   */
  readonly startToken?: string;
}

/** What a folder can be claimed for: the file that says who has it. */
type Purpose = 'serve' | 'deliver';
const attemptsMax = 8;
/** Numbers the files that this process prepares, so that no two have one name. */
let drafts = 0;

/**
 * Claims a data folder, made where it is missing, for a process that serves from it, or that
 * delivers the webhooks of it. A claim whose
 * process is gone is replaced. Rejects with `conflict` while another process holds the folder, with
 * `unavailable` when it cannot be written.
 */
export async function claimFolder(
  folder: string,
  claimant: Claimant,
  purpose: Purpose = 'serve',
): Promise<FolderClaim> {
  await prepareFolder(folder);
  const { pid, startToken = (await processState(pid))?.startToken ?? '' } = claimant;
  const path = join(folder, `${purpose}.pid`);
  const text = `${pid} ${startToken}\n`;
  try {
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      if (await createWhole(path, text)) return { release: () => removeOwn(path, text) };
      const held = await readIfThere(path);
      if (held === undefined) continue;
      if (await isAlive(held)) throw inUse(folder, held, purpose);
      await removeStale(path, held, pid);
    }
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw folderFailure(folder, `cannot be claimed (${reasonOf(error)})`, error);
  }
  throw new Failure('conflict', `the data folder ${folder} is being claimed by others`);
}

/**
 * The pid of the process that has claimed a data folder and runs; undefined where there is none.
 */
export async function claimantOf(folder: string, purpose: Purpose): Promise<number | undefined> {
  const held = await readIfThere(join(folder, `${purpose}.pid`));
  return held !== undefined && (await isAlive(held)) ? Number(held.split(' ')[0]) : undefined;
}

/**
 * Makes a file with its text in it, in one step; false when there is one of that name. On a full
 * disk it is a symbolic link to the text instead, which needs no block of the disk.
 */
async function createWhole(path: string, text: string): Promise<boolean> {
  drafts += 1;
  const draft = `${path}.${process.pid}.${drafts}`;
  try {
    await writeFile(draft, text, { mode: 0o600 });
    await link(draft, path);
    return true;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    if (code !== 'ENOSPC' && code !== 'EDQUOT') throw error;
    return await createLink(path, text);
  } finally {
    await rm(draft, { force: true });
  }
}

async function createLink(path: string, text: string): Promise<boolean> {
  try {
    await symlink(text, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** The text of a claim; undefined where there is none. */
async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    // It is a file, as most often: Windows has another word for that.
    if (!isMissing(error)) return readFileIfThere(path);
    return undefined;
  }
}

async function readFileIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Takes a stale claim away, unless another process has put its own in its place meanwhile. */
async function removeStale(path: string, stale: string, pid: number): Promise<void> {
  const aside = `${path}.${pid}.stale`;
  try {
    await rename(path, aside);
  } catch (error) {
    if (isMissing(error)) return;
    throw error;
  }
  const moved = await readIfThere(aside);
  if (moved !== undefined && moved !== stale) await link(aside, path);
  await rm(aside, { force: true });
}

async function removeOwn(path: string, text: string): Promise<void> {
  if ((await readIfThere(path)) === text) await rm(path, { force: true });
}

async function isAlive(claim: string): Promise<boolean> {
  const [pidText = '', startToken = ''] = claim.trim().split(' ');
  const pid = Number(pidText);
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it is there, and somebody else's.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  const state = await processState(pid);
  if (state === undefined) return true;
  return !state.ended && (startToken === '' || startToken === state.startToken);
}

interface ProcessState {
  /** Dead, though its parent has not asked for its exit code yet. */
  readonly ended: boolean;
  /** When it started, in clock ticks since the system did. */
  readonly startToken: string;
}

/** What Linux says of a process (proc_pid_stat(5)); undefined on other systems. */
async function processState(pid: number): Promise<ProcessState | undefined> {
  let text: string;
  try {
    text = await readFile(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The second field is the command in brackets, which may hold anything; these come after it.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state = '', startToken = ''] = [fields[0], fields[19]];
  return { ended: state === 'Z' || state === 'X', startToken };
}

function inUse(folder: string, claim: string, purpose: Purpose): Failure {
  const [pid = ''] = claim.split(' ');
  return new Failure(
    'conflict',
    `the data folder ${folder} is in use by another waymark (pid ${pid}); ` +
      `if it is a copy of the one in use, remove ${purpose}.pid in it`,
  );
}
