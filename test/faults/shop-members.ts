import { execFile } from 'node:child_process';
import { mkdir, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { temporaryFolder, writeFiles, type Cleaning } from '../folder.ts';
import { freePort } from '../free-port.ts';
import { postOperation } from '../harness.ts';
import { startServed, workersOf, type Served } from '../process.ts';
import { FaultyProxy } from './proxy.ts';

const run = promisify(execFile);

/** A server of the run, which is started again when it was killed. */
export interface Member {
  readonly name: string;
  readonly url: string;
  readonly folder: string;
  /** Between it and its centre; undefined at the centre. */
  readonly proxy: FaultyProxy | undefined;
  /** A disk of its own that can be full; undefined if none can be mounted. */
  readonly disk: SmallDisk | undefined;
  /** The process that was started, and its workers. */
  pids(): readonly number[];
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Shifts its clock, also that of later processes. */
  shiftClock(ms: number): Promise<void>;
}

/** The members of a run: a centre, a replica and two counters, one of which follows the replica. */
export interface Shop {
  readonly centre: Member;
  readonly counters: readonly Member[];
  readonly members: readonly Member[];
  readonly apikey: string;
}

const plan = [
  { name: 'copy', role: 'replica', follows: 'centre', workers: 1 },
  { name: 'shop-1', role: 'counter', follows: 'centre', workers: 2 },
  { name: 'shop-2', role: 'counter', follows: 'copy', workers: 1 },
] as const;

const preload = (name: string): string => `--import=${new URL(name, import.meta.url).href}`;

/** The environment that shifts the clock, and that breaks the code: see clock.ts and broken.ts. */
const faultyEnv = {
  NODE_OPTIONS: [
    preload('clock.ts'),
    ...(process.env.BROKEN === undefined ? [] : [preload('broken.ts')]),
  ].join(' '),
};

/** Starts the members; the centre has the table `orders`. */
export async function startShop(context: Cleaning): Promise<Shop> {
  const folder = await temporaryFolder(context);
  const ports = new Map([['centre', await freePort()]]);
  for (const { name } of plan) ports.set(name, await freePort());
  const portOf = (name: string): number => ports.get(name) ?? 0;
  const ini = (name: string, workers: number): string =>
    `[server]\nlisten = 127.0.0.1:${portOf(name)}\ndata = data\nworkers = ${workers}\n` +
    '[log]\naccess = no\n[webhook]\nallow_private = 127.0.0.0/8\nretry = 50ms, 200ms\n';
  const begin = { context, folder };
  const centre = await startMember(begin, 'centre', `${ini('centre', 1)}[node]\nrole = central\n`);
  const { apikey } = centre;
  const call = (name: string, v: object) => postOperation(centre.url, name, v, { apikey });
  const schema = { type: 'object', properties: { no: { type: 'string' } } };
  await call('svc1.table.insert', { name: 'orders', schema, key: 'no' });
  const keys = new Map<string, string>();
  for (const { name } of plan) {
    const scopes = ['follow', 'event', 'record.write'];
    const { data } = await call('svc1.key.insert', { name, scopes, node: name });
    keys.set(name, (data as { key: string }).key);
  }
  const members: Member[] = [centre];
  for (const { name, role, follows, workers } of plan) {
    const proxyPort = await freePort();
    const proxy = await FaultyProxy.start(proxyPort, portOf(follows));
    context.after(() => {
      proxy.close();
    });
    const central = `http://127.0.0.1:${proxyPort}`;
    const node = `[node]\nrole = ${role}\nname = ${name}\ncentral = ${central}\nkey_file = k\n`;
    const text = ini(name, workers) + node;
    members.push(await startMember({ ...begin, proxy, key: keys.get(name) }, name, text));
  }
  const counters = members.filter(({ name }) => name.startsWith('shop-'));
  return { centre, counters, members, apikey };
}

async function startMember(
  {
    context,
    folder: parent,
    proxy,
    key,
  }: {
    readonly context: Cleaning;
    readonly folder: string;
    readonly proxy?: FaultyProxy;
    readonly key?: string | undefined;
  },
  name: string,
  ini: string,
): Promise<Member & { readonly apikey: string }> {
  const folder = join(parent, name);
  const clock = join(parent, `${name}.clock`);
  await mkdir(folder);
  const disk = await SmallDisk.mount(context, folder);
  await writeFiles(folder, { 'server.ini': ini, ...(key !== undefined && { k: key }) });
  const env = { XDG_DATA_HOME: parent, CLOCK_FILE: clock, ...faultyEnv };
  const serve = (first: boolean): Promise<Served> =>
    startServed(context, join(folder, 'server.ini'), { first, env });
  let served = await serve(key === undefined);
  const { url, adminKey: apikey } = served;
  return {
    ...{ name, url, folder, proxy, disk, apikey },
    pids: () => [served.pid, ...workersOf(served)],
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

/** A file system in memory, which can be made full. */
class SmallDisk {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Mounts one at a folder; resolves to undefined where that is not allowed. */
  static async mount(context: Cleaning, folder: string): Promise<SmallDisk | undefined> {
    try {
      await run('mount', ['-t', 'tmpfs', '-o', 'size=1g', 'tmpfs', folder]);
    } catch {
      return undefined;
    }
    context.after(() => run('umount', ['--lazy', folder]));
    return new SmallDisk(folder);
  }

  /** Takes the free space; a few more pages stay free now and then, so that some writes begin. */
  async fill(): Promise<void> {
    for (;;) {
      const { blocks, bfree, bsize } = await statfs(this.#folder);
      const free = Math.floor(Math.random() * 16);
      const kib = Math.ceil(((blocks - bfree + free) * bsize) / 1024);
      // A server may write in between, so that more is used than the new size.
      if (await this.#resize(`${kib}k`)) return;
      await delay(1);
    }
  }

  async free(): Promise<void> {
    await this.#resize('1g');
  }

  #resize(size: string): Promise<boolean> {
    return run('mount', ['-o', `remount,size=${size}`, this.#folder]).then(
      () => true,
      () => false,
    );
  }
}
