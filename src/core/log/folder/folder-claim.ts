import { link, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Failure } from '../../values/failure.ts';
import { folderFailure, isMissing, prepareFolder, errorReason } from './data-folder.ts';

/** The claim of one process on a data folder. */
export interface FolderClaim {
  /** Releases the claim; does nothing if another process has taken it over. */
  release(): Promise<void>;
}

interface Claimant {
  readonly pid: number;
  /**
   * Distinguishes the process from a later one with the same pid; by default its start time, where
   * the system reports it (Linux).
   */
  readonly startToken?: string;
}

/** The purpose of a claim; it names the file that holds the claim. */
type Purpose = 'serve' | 'deliver';
const attemptsMax = 40;
/** How long a process waits while another one removes a stale claim, in milliseconds. */
const removalMs = 25;
/** Numbers the draft files of this process, so that their names are unique. */
let drafts = 0;

/**
 * Claims a data folder for a process that serves from it or delivers its webhooks; creates the
 * folder if it is missing. A claim of a process that has ended is replaced. Rejects with `conflict`
 * while another process holds the folder, with `unavailable` when it cannot be written.
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
      await removeStale(path, held, text);
    }
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw folderFailure(folder, `cannot be claimed (${errorReason(error)})`, error);
  }
  throw new Failure(
    'conflict',
    `other processes are claiming the data folder ${folder} right now: try again`,
  );
}

/**
 * Takes over the claim of a process that still serves requests until its connections end. Until
 * then, both processes use the folder, as workers do. Rejects with `conflict` if that process does
 * not have the folder.
 */
export async function takeOverFolder(
  folder: string,
  { pid, from }: { readonly pid: number; readonly from: number },
): Promise<FolderClaim> {
  const path = join(folder, 'serve.pid');
  const held = await readIfThere(path);
  if (held === undefined || Number(held.split(' ')[0]) !== from) {
    const what = held === undefined ? 'no process' : `the process ${held.split(' ')[0]}`;
    throw new Failure('conflict', `${what} holds the data folder ${folder}, not ${from}`);
  }
  const text = `${pid} ${(await processState(pid))?.startToken ?? ''}\n`;
  const draft = `${path}.${pid}.next`;
  try {
    await rm(draft, { force: true });
    await createWhole(draft, text);
    await rename(draft, path);
  } catch (error) {
    throw folderFailure(folder, `cannot be claimed (${errorReason(error)})`, error);
  }
  return { release: () => removeOwn(path, text) };
}

/** The pid of the running process that has claimed a data folder; undefined if there is none. */
export async function claimantPid(folder: string, purpose: Purpose): Promise<number | undefined> {
  const held = await readIfThere(join(folder, `${purpose}.pid`));
  return held !== undefined && (await isAlive(held)) ? Number(held.split(' ')[0]) : undefined;
}

/**
 * Creates a file with its text atomically; returns false if the file exists. On a full disk it
 * creates a symbolic link to the text instead, which needs no disk block.
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

/** The text of a claim; undefined if there is none. */
async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    // The claim is a file, the usual case; Windows reports it with another code.
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

/**
 * Removes a stale claim. Only the process that holds the lock file beside it may do so: another one
 * could find the stale claim, be slower, and remove the new claim in its place.
 */
async function removeStale(path: string, stale: string, claimant: string): Promise<void> {
  const lock = `${path}.stale`;
  if (!(await createWhole(lock, claimant))) {
    const holder = await readIfThere(lock);
    if (holder !== undefined && !(await isAlive(holder))) await rm(lock, { force: true });
    else await delay(removalMs);
    return;
  }
  try {
    if ((await readIfThere(path)) === stale) await rm(path, { force: true });
  } finally {
    await rm(lock, { force: true });
  }
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
    // EPERM: the process exists and belongs to another user.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  const state = await processState(pid);
  if (state === undefined) return true;
  return !state.ended && (startToken === '' || startToken === state.startToken);
}

interface ProcessState {
  /** Whether the process has ended, but its parent has not yet read its exit code. */
  readonly ended: boolean;
  /** The start of the process, in clock ticks since the system started. */
  readonly startToken: string;
}

/** The state of a process on Linux (proc_pid_stat(5)); undefined on other systems. */
async function processState(pid: number): Promise<ProcessState | undefined> {
  let text: string;
  try {
    text = await readFile(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The second field, the command in brackets, may hold any text; the other fields follow it.
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
