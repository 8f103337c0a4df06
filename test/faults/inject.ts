import { setTimeout as delay } from 'node:timers/promises';
import type { Member } from './member.ts';
import type { FaultRun } from './runs.ts';

/** The time between faults, and how long a process stays stopped or a connection broken. */
const betweenMsMax = 400;
const faultMsMax = 2_500;
/** How long a process stays stopped so that another one takes over its tasks. */
const longStopMs = 20_000;
/** How long a counter is offline while other faults happen. */
const offlineMsMin = 60_000;
const offlineMsMax = 150_000;
const clockShiftMsMax = 60 * 60 * 1_000;

/** A kind of fault. */
interface Fault {
  /** Whether a member can have it. */
  readonly fits: (member: Member) => boolean;
  /** How often it is chosen, compared with other kinds: 1 by default. */
  readonly weight?: number;
  readonly inject: (member: Member, run: FaultRun) => Promise<void> | void;
}

/** The counters that are offline. */
const offline = new Map<Member, Promise<void>>();

const isLinked = (member: Member): boolean => member.proxies.length > 0 && !offline.has(member);

const kinds: Readonly<Record<string, Fault>> = {
  kill: {
    fits: () => true,
    async inject(member, run) {
      await member.kill();
      await delay(briefMs(run) / 3);
      await member.start();
    },
  },
  killWorker: {
    fits: (member) => member.pids().length > 1,
    inject(member, { random }) {
      const worker = member.pids()[1 + random.below(member.pids().length - 1)];
      if (worker !== undefined) process.kill(worker, 'SIGKILL');
    },
  },
  stop: {
    fits: () => true,
    inject: (member, run) => stop(member, run, briefMs(run)),
  },
  longStop: {
    fits: ({ kind }) => kind === 'nats' || kind === 'node',
    weight: 0.2,
    inject: (member, run) => stop(member, run, longStopMs),
  },
  reset: {
    fits: isLinked,
    inject({ proxies }) {
      for (const proxy of proxies) proxy.cut();
      for (const proxy of proxies) proxy.heal();
    },
  },
  cut: {
    fits: isLinked,
    async inject({ proxies }, run) {
      for (const proxy of proxies) proxy.cut();
      await delay(briefMs(run));
      for (const proxy of proxies) proxy.heal();
    },
  },
  stall: {
    fits: isLinked,
    async inject({ proxies }, run) {
      for (const proxy of proxies) proxy.stall();
      await delay(briefMs(run));
      for (const proxy of proxies) proxy.heal();
    },
  },
  // The next faults come while it lasts.
  offline: {
    fits: (member) => member.kind === 'counter' && isLinked(member),
    weight: 0.3,
    inject(member, { random }) {
      const ms = offlineMsMin + random.next() * (offlineMsMax - offlineMsMin);
      for (const proxy of member.proxies) proxy.cut();
      const ended = delay(ms).then(() => {
        for (const proxy of member.proxies) proxy.heal();
        offline.delete(member);
      });
      offline.set(member, ended);
    },
  },
  fullDisk: {
    fits: ({ disk }) => disk !== undefined,
    async inject(member, run) {
      // Three servers cannot repair the stream if one loses its data while another one lacks some.
      await member.store?.untilCurrent();
      await member.disk?.fill();
      await delay(briefMs(run) / 2);
      if (member.store === undefined && run.random.chance(0.3)) await restart(member);
      await delay(briefMs(run) / 2);
      if (member.store !== undefined) await member.kill();
      await member.disk?.free();
      if (member.store === undefined) return;
      await member.store.empty();
      await member.start();
      await member.store.untilCurrent();
    },
  },
  shiftClock: {
    fits: ({ shiftClock }) => shiftClock !== undefined,
    inject: ({ shiftClock }, { random }) =>
      shiftClock?.(Math.round((2 * random.next() - 1) * clockShiftMsMax)),
  },
};

/**
 * Injects faults one after the other until one breaks a promise. Resolves when they are over; rejects
 * if a fault cannot be repaired, when the others are over.
 */
export async function injectFaults(members: readonly Member[], run: FaultRun): Promise<void> {
  try {
    await injectAll(members, run);
  } finally {
    await Promise.all(offline.values());
    await startEnded(members);
  }
}

async function injectAll(members: readonly Member[], run: FaultRun): Promise<void> {
  const { faults, random, violations, injected } = run;
  for (let fault = 1; fault <= faults && violations.length === 0; fault += 1) {
    const member = pick(members, random.next());
    // Broken code can have ended it.
    await startEnded([member]);
    const kind = chooseKind(member, random.next());
    const name = `${kind} ${member.kind}`;
    if (process.env.TRACE !== undefined) process.stderr.write(`${fault}: ${kind} ${member.name}\n`);
    await kinds[kind]?.inject(member, run);
    injected[name] = (injected[name] ?? 0) + 1;
    if (fault % 20 === 0) process.stderr.write(`${fault} faults\n`);
    await delay(random.next() * betweenMsMax);
  }
}

async function startEnded(members: readonly Member[]): Promise<void> {
  for (const member of members) if (member.pids().length === 0) await member.start();
}

/** Prints a line if the members have no disks that can be made full. */
export function tellOfDisks(members: readonly Member[]): void {
  if (members.every(({ disk }) => disk !== undefined)) return;
  process.stderr.write('No full disks: only root can mount small ones, and only on Linux.\n');
}

function chooseKind(member: Member, chance: number): string {
  const fitting = Object.entries(kinds).filter(([, { fits }]) => fits(member));
  const total = fitting.reduce((sum, [, { weight = 1 }]) => sum + weight, 0);
  let left = chance * total;
  for (const [name, { weight = 1 }] of fitting) {
    left -= weight;
    if (left <= 0) return name;
  }
  return 'kill';
}

/** Stops one of its processes (SIGSTOP) for a time. */
async function stop(member: Member, { random }: FaultRun, ms: number): Promise<void> {
  const pid = pick(member.pids(), random.next());
  process.kill(pid, 'SIGSTOP');
  await delay(ms);
  process.kill(pid, 'SIGCONT');
}

async function restart(member: Member): Promise<void> {
  await member.kill();
  await member.start();
}

function briefMs({ random }: FaultRun): number {
  return random.next() * faultMsMax;
}

function pick<T>(from: readonly T[], chance: number): T {
  return from[Math.floor(chance * from.length)] as T;
}
