import { setTimeout as delay } from 'node:timers/promises';
import type { Member } from './shop-members.ts';

/** The time between faults, and how long a stopped process or a broken connection stays so. */
const betweenMsMax = 400;
const faultMsMax = 2_500;
const clockShiftMsMax = 60 * 60 * 1_000;

/** The kinds of faults; a centre has no proxy, and not every machine lets a test mount a disk. */
const kinds: Readonly<Record<string, (member: Member, ms: number) => Promise<void> | void>> = {
  async kill(member, ms) {
    await member.kill();
    await delay(ms / 4);
    await member.start();
  },
  killWorker(member) {
    const [, ...workers] = member.pids();
    if (workers.length > 0) process.kill(pick(workers), 'SIGKILL');
  },
  async stop(member, ms) {
    const pid = pick(member.pids());
    process.kill(pid, 'SIGSTOP');
    await delay(ms);
    process.kill(pid, 'SIGCONT');
  },
  reset({ proxy }) {
    proxy?.cut();
    proxy?.heal();
  },
  async cut({ proxy }, ms) {
    proxy?.cut();
    await delay(ms);
    proxy?.heal();
  },
  async stall({ proxy }, ms) {
    proxy?.stall();
    await delay(ms);
    proxy?.heal();
  },
  async fullDisk(member, ms) {
    await member.disk?.fill();
    await delay(ms / 2);
    if (Math.random() < 0.3) {
      await member.kill();
      await member.start();
    }
    await delay(ms / 2);
    await member.disk?.free();
  },
  async shiftClock(member) {
    await member.shiftClock(Math.round((2 * Math.random() - 1) * clockShiftMsMax));
  },
};

/** Which kinds a member can have. */
function kindsOf(member: Member): readonly string[] {
  const { proxy, disk } = member;
  return Object.keys(kinds).filter((kind) => {
    if (['reset', 'cut', 'stall'].includes(kind)) return proxy !== undefined;
    if (kind === 'fullDisk') return disk !== undefined;
    return kind !== 'killWorker' || member.pids().length > 1;
  });
}

/** Injects faults one after the other while `isSound`; `injected` gets the name of each. */
export async function injectFaults(
  members: readonly Member[],
  count: number,
  {
    isSound,
    injected,
  }: { readonly isSound: () => boolean; readonly injected: (kind: string) => void },
): Promise<void> {
  for (let fault = 1; fault <= count && isSound(); fault += 1) {
    const member = pick(members);
    const kind = pick(kindsOf(member));
    if (process.env.TRACE !== undefined) process.stderr.write(`${fault}: ${kind} ${member.name}\n`);
    await kinds[kind]?.(member, Math.random() * faultMsMax);
    injected(kind);
    await delay(Math.random() * betweenMsMax);
  }
}

function pick<T>(from: readonly T[]): T {
  return from[Math.floor(Math.random() * from.length)] as T;
}
