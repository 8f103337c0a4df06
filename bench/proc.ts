import { readFile, writeFile } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';

/**
 * CPU time in microseconds that processes have used, all threads, user and system:
 * /proc/<pid>/stat, see proc(5).
 */
export async function cpuMicroseconds(pids: readonly number[]): Promise<number> {
  const ticks = await Promise.all(pids.map(cpuTicks));
  return (ticks.reduce((sum, one) => sum + one, 0) / ticksPerSecond) * 1e6;
}

/** CPU time in microseconds of all processes that this one has started and that have ended. */
export async function endedMicroseconds(): Promise<number> {
  const fields = await statFields('self');
  return ((Number(fields[13]) + Number(fields[14])) / ticksPerSecond) * 1e6;
}

/**
 * CPU time in microseconds of all processes on a core, with the time that the host of a virtual
 * machine took (/proc/stat). Interrupts do not count: here they are those of the network.
 */
export async function coreMicroseconds(core: number): Promise<number> {
  const stat = await readFile('/proc/stat', 'latin1');
  const fields =
    stat
      .split('\n')
      .find((line) => line.startsWith(`cpu${core} `))
      ?.split(' ') ?? [];
  const [, user, nice, system, , , , , steal] = fields.map(Number);
  return (((user ?? 0) + (nice ?? 0) + (system ?? 0) + (steal ?? 0)) / ticksPerSecond) * 1e6;
}

/** Resident memory of processes in bytes, added up; pages that they share count once for each. */
export function residentBytes(pids: readonly number[]): Promise<number> {
  return statusBytes(pids, 'VmRSS');
}

/**
 * Their anonymous resident memory: without the mapped pages of files, which the system takes back
 * when it needs memory.
 */
export function ownBytes(pids: readonly number[]): Promise<number> {
  return statusBytes(pids, 'RssAnon');
}

/** The largest resident memory of processes since `resetPeaks`, in bytes, added up. */
export function peakBytes(pids: readonly number[]): Promise<number> {
  return statusBytes(pids, 'VmHWM');
}

/** Resets the kernel's peaks of the resident memory of processes (proc_pid_clear_refs(5)). */
export async function resetPeaks(pids: readonly number[]): Promise<void> {
  await Promise.all(pids.map((pid) => writeFile(`/proc/${pid}/clear_refs`, '5')));
}

async function statusBytes(pids: readonly number[], field: string): Promise<number> {
  const kilobytes = await Promise.all(
    pids.map(async (pid) => {
      const status = await readFile(`/proc/${pid}/status`, 'utf8');
      return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0);
    }),
  );
  return kilobytes.reduce((sum, one) => sum + one, 0) * 1024;
}

/** The processes that a process has started itself. */
export async function childPids(pid: number): Promise<readonly number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.split(' ').filter(Boolean).map(Number);
}

/** The cores that this process may run on. */
export async function allowedCores(): Promise<readonly number[]> {
  const status = await readFile('/proc/self/status', 'utf8');
  const list = /^Cpus_allowed_list:\s+(\S+)$/m.exec(status)?.[1] ?? '';
  return list.split(',').flatMap((span) => {
    const [first = 0, last = first] = span.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, at) => first + at);
  });
}

const ticksPerSecond = clockTicksPerSecond();

function clockTicksPerSecond(): number {
  try {
    return Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  } catch {
    // Linux since 2.6 always has this value in user space, for any timer frequency of the kernel.
    return 100;
  }
}

async function cpuTicks(pid: number): Promise<number> {
  const fields = await statFields(pid);
  return Number(fields[11]) + Number(fields[12]);
}

/**
 * The fields after the second one, which is a name in brackets that may contain any character. The
 * 12th and 13th of them are utime and stime, the next two those of children that have ended.
 */
async function statFields(pid: number | 'self'): Promise<readonly string[]> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}
