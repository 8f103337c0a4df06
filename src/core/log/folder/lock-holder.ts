import {
  existsSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs';

/** A process that holds a lock of a file. */
interface LockHolder {
  readonly pid: number;
  /** Its words, as `ps` shows them. */
  readonly command: string;
  /** Whether SIGSTOP, Ctrl+Z or a debugger has stopped it. */
  readonly isStopped: boolean;
}

/**
 * Returns another process that holds a POSIX lock of one of the files, a stopped one first;
 * undefined if there is none, or if the system does not tell (proc_locks(5): Linux does).
 */
export function otherHolder(files: readonly string[]): LockHolder | undefined {
  const paths = files.filter((file) => existsSync(file)).map((file) => realpathSync(file));
  const inodes = new Set(paths.map((path) => String(statSync(path).ino)));
  const holders = readLocks().flatMap((line) => {
    // "1: POSIX  ADVISORY  WRITE 4711 fd:00:2531452 0 EOF"; "->" marks one that waits.
    const [, kind, , , pid = '', file] = line.split(/\s+/);
    const isOther = kind === 'POSIX' && Number(pid) > 0 && Number(pid) !== process.pid;
    return isOther && inodes.has(file?.split(':')[2] ?? '') ? holderOf(Number(pid), paths) : [];
  });
  return holders.find(({ isStopped }) => isStopped) ?? holders[0];
}

/** Says what a user can do about a process that keeps others from a folder. */
export function holderAdvice({ pid, command, isStopped }: LockHolder, folder: string): string {
  const state = isStopped
    ? `is stopped. Resume it with "kill -CONT ${pid}", or end it with "kill -KILL ${pid}".`
    : `does not finish. End it with "kill ${pid}" if it hangs.`;
  return `Process ${pid} (${command}) has locked ${folder} and ${state}`;
}

function readLocks(): readonly string[] {
  try {
    return readFileSync('/proc/locks', 'utf8').split('\n');
  } catch {
    // Another system than Linux.
    return [];
  }
}

const commandCharactersMax = 100;

/** The process as a holder if it has one of the files open; none if it has ended meanwhile. */
function holderOf(pid: number, paths: readonly string[]): readonly LockHolder[] {
  const folder = `/proc/${pid}`;
  try {
    // The device in /proc/locks is not always that of stat(2), so the open files decide.
    const files = readdirSync(`${folder}/fd`).map((name) => readlinkSync(`${folder}/fd/${name}`));
    if (!files.some((file) => paths.includes(file))) return [];
    const words = readFileSync(`${folder}/cmdline`, 'utf8').split('\0');
    const stat = readFileSync(`${folder}/stat`, 'utf8');
    // The second field, the command in brackets, may hold any text; the state follows it.
    const state = stat.slice(stat.lastIndexOf(')') + 2)[0];
    const command = words.join(' ').trim().slice(0, commandCharactersMax);
    return [{ pid, command, isStopped: state === 'T' || state === 't' }];
  } catch {
    return [];
  }
}
