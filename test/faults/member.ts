import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { NatsServer } from '../modules/cluster/nats.ts';
import { writeFiles, type Cleaning } from '../folder.ts';
import { freePort } from '../free-port.ts';
import { isDead, startServed, workersOf, type Served } from '../process.ts';
import { FaultyProxy } from './proxy.ts';
import { SmallDisk } from './small-disk.ts';

/** A server of a fault run, which the run starts again after a kill. */
export interface Member {
  readonly name: string;
  /** `centre` for a single machine, `node` for one of a cluster. */
  readonly kind: 'centre' | 'node' | 'replica' | 'counter' | 'nats';
  /** '' for a NATS server. */
  readonly url: string;
  readonly folder: string;
  /** The proxies between it and the servers that it connects to. */
  readonly proxies: readonly FaultyProxy[];
  /** Its disk, which can be made full; undefined if the user may not mount one. */
  readonly disk: SmallDisk | undefined;
  /** The process that was started, and its workers; none once it has ended. */
  pids(): readonly number[];
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Only for a NATS server: see StoreOfNats. */
  readonly store?: StoreOfNats;
  /** Shifts its clock, also that of later processes; undefined for a NATS server. */
  readonly shiftClock: ((ms: number) => Promise<void>) | undefined;
}

/** Replaces a NATS server (docs/how-to/cluster.md). */
export interface StoreOfNats {
  /** Resolves once all servers have the whole stream. */
  untilCurrent(): Promise<unknown>;
  /** Removes its data, while the server is stopped. */
  empty(): Promise<void>;
}

/** A Waymark of a fault run. */
export interface WaymarkMember extends Member {
  /** The admin key of the first start; '' for a member that has none. */
  readonly apikey: string;
}

/** The settings of a member. */
interface MemberPlan {
  readonly name: string;
  readonly kind: Member['kind'];
  readonly workers?: number;
  /** Sections of its ini file besides `[server]`, `[log]` and `[webhook]`. */
  readonly ini: string;
  /** The key with which it follows another node; it is written to the file `k`. */
  readonly key?: string | undefined;
  readonly proxies?: readonly FaultyProxy[];
  /** Whether it makes the first admin key. */
  readonly isFirst?: boolean;
}

const preload = (name: string): string => `--import=${new URL(name, import.meta.url).href}`;

/** The environment that shifts the clock, and that breaks the code: see clock.ts and broken.ts. */
const faultyEnv = {
  NODE_OPTIONS: [
    preload('clock.ts'),
    ...(process.env.BROKEN === undefined ? [] : [preload('broken.ts')]),
  ].join(' '),
};

/** Starts a Waymark in a new folder below `parent`, on a disk that can be made full. */
export async function startMember(
  context: Cleaning,
  parent: string,
  plan: MemberPlan,
): Promise<WaymarkMember> {
  const { name, kind, workers = 1, ini, key, proxies = [], isFirst = false } = plan;
  const folder = join(parent, name);
  const clock = join(parent, `${name}.clock`);
  await mkdir(folder);
  const disk = await SmallDisk.mount(context, folder);
  const server =
    `[server]\nlisten = 127.0.0.1:${await freePort()}\ndata = data\nworkers = ${workers}\n` +
    '[log]\naccess = no\n[webhook]\nallow_private = 127.0.0.0/8\nretry = 50ms, 200ms\n';
  await writeFiles(folder, { 'server.ini': server + ini, ...(key !== undefined && { k: key }) });
  const env = { XDG_DATA_HOME: parent, CLOCK_FILE: clock, ...faultyEnv };
  const serve = (first: boolean): Promise<Served> =>
    startServed(context, join(folder, 'server.ini'), { first, env });
  let served = await serve(isFirst);
  const { url, adminKey: apikey } = served;
  return {
    ...{ name, kind, url, folder, proxies, disk, apikey },
    pids: () => (isDead(served.pid) ? [] : [served.pid, ...workersOf(served)]),
    async kill() {
      served.child.kill('SIGKILL');
      await served.closed;
    },
    async start() {
      served = await serve(false);
    },
    shiftClock: (ms) => writeFile(clock, String(ms)),
  };
}

/** A NATS server as a member; `untilCurrent` as in StoreOfNats. */
export function natsMember(
  server: NatsServer,
  {
    folder,
    disk,
    untilCurrent,
  }: {
    readonly folder: string;
    readonly disk: SmallDisk | undefined;
    readonly untilCurrent: () => Promise<unknown>;
  },
): Member {
  const empty = async (): Promise<void> => {
    for (const file of await readdir(folder)) await rm(join(folder, file), { recursive: true });
  };
  return {
    ...{ name: server.name, kind: 'nats', url: '', folder, proxies: [], disk },
    store: { untilCurrent, empty },
    pids: () => (server.pid === undefined || isDead(server.pid) ? [] : [server.pid]),
    kill: () => server.kill(),
    start: () => server.start(),
    shiftClock: undefined,
  };
}

/** Starts a proxy in front of each of some ports of the loopback. */
export async function startProxies(
  context: Cleaning,
  targets: readonly number[],
): Promise<readonly FaultyProxy[]> {
  const proxies: FaultyProxy[] = [];
  for (const target of targets) {
    const proxy = await FaultyProxy.start(target);
    context.after(() => {
      proxy.close();
    });
    proxies.push(proxy);
  }
  return proxies;
}

/** The port of a URL. */
export function portOf(url: string): number {
  return Number(new URL(url).port);
}
