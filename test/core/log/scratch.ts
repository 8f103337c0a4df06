import { families } from '../../../src/families.ts';
import { spawn, type ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { uuidv7 } from 'uuidv7';
import type { Change, Draft } from '../../../src/core/log/change.ts';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import { openStore } from '../../../src/core/log/open.ts';
import type { LoggedDraft, Store } from '../../../src/core/log/store.ts';
import { type Sharing, joining } from '../../../src/modules/cluster/log/join.ts';
import { MemoryLog } from './shared/memory-log.ts';
import { temporaryFolder, type Cleaning } from '../../folder.ts';

/**
 * With `TEST_LOG=shared`, stores write to a shared log, so that the tests of one log are those of
 * the other, too.
 */
const isShared = process.env.TEST_LOG === 'shared';

/** For tests of several processes: a shared log in memory is that of one process. */
export const ofOneMachine = { skip: isShared && 'a shared log in memory has one process' };

/** The shared logs of folders: a store that is opened again uses that of its folder. */
const logs = new Map<string, MemoryLog>();

/** The shared log of a folder, by default a new one. */
function sharingIn(folder: string): Sharing {
  const log = logs.get(folder) ?? new MemoryLog();
  logs.set(folder, log);
  return {
    open: () => Promise.resolve(log.open()),
    notice: () => Promise.resolve(),
    failed: (error) => {
      throw error;
    },
  };
}

/** Opens the store of a folder; the caller closes it. */
export function openIn(folder: string): Promise<Store> {
  const join = isShared ? joining(sharingIn(folder)) : undefined;
  return openStore({ families, folder, now: Date.now, newId: uuidv7, join });
}

/** A store in a folder, by default a new one. Closed after the test. */
export async function scratchStore(
  t: Cleaning,
  { folder, now = Date.now }: { readonly folder?: string; readonly now?: () => number } = {},
): Promise<Store> {
  const at = folder ?? (await temporaryFolder(t));
  const join = isShared ? joining(sharingIn(at)) : undefined;
  const store = await openStore({ families, folder: at, now, newId: uuidv7, join });
  t.after(() => store.close());
  return store;
}

/** An insert of a page rule; by default of kind `content` for the origin `*`. */
export function inserted(id: string, data: JsonObject): Draft {
  return {
    family: 'userinterface',
    id,
    action: 'insert',
    data: { origin: '*', kind: 'content', ...data },
  };
}

/** An edit of a page rule. */
export function edited(id: string, data: JsonObject): Draft {
  return { family: 'userinterface', id, action: 'edit', data };
}

/** Commits drafts as the author `test`; resolves to the logged changes. */
export function commit(store: Store, ...drafts: LoggedDraft[]): Promise<readonly Change[]> {
  return store.commit('test', () => ({ drafts, answer: (changes) => changes }));
}

const writer = fileURLToPath(new URL('writer.ts', import.meta.url));

/** A process that writes rules to a folder: see writer.ts. */
export interface Writer {
  readonly child: ChildProcess;
  /** Lines of its standard output. */
  readonly lines: AsyncIterable<string>;
  /** Its standard error so far. */
  readonly err: () => string;
  /** Resolves when it has ended and all its output was read. */
  readonly closed: Promise<number | null>;
}

/** Starts writer.ts on a folder, through a shell command if one is given. */
export function startWriter(
  t: Cleaning,
  words: readonly string[],
  { shell }: { readonly shell?: string } = {},
): Writer {
  const [command, ...rest] = [
    ...(shell === undefined ? [] : ['sh', '-c', `${shell}; exec "$0" "$@"`]),
    process.execPath,
    writer,
    ...words,
  ];
  const child = spawn(command ?? '', rest, { stdio: ['pipe', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
  let err = '';
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString();
  });
  return { child, lines: createInterface({ input: child.stdout }), err: () => err, closed };
}

/** Starts a process that stops itself while it opens a folder, `count` times. */
export function startStoppedOpener(t: Cleaning, folder: string, count = 1): ChildProcess {
  const path = join(import.meta.dirname, 'stopped-opener.ts');
  const child = spawn(process.execPath, [path, folder, String(count)], { stdio: 'inherit' });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

/** Resolves to true when a process is stopped, to false when it has ended. */
export async function isStopped({ pid, exitCode }: ChildProcess): Promise<boolean> {
  for (;;) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') X');
    const state = stat.slice(stat.lastIndexOf(')') + 2)[0];
    if (state === 'T') return true;
    if (exitCode !== null || state === 'X' || state === 'Z') return false;
    await setImmediate();
  }
}
