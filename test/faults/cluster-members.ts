import { join } from 'node:path';
import { mkdir } from 'node:fs/promises';
import { uuidv7 } from 'uuidv7';
import { createCluster } from '../../src/cluster/status.ts';
import { startNats, until, type NatsServer } from '../cluster/nats.ts';
import { temporaryFolder, writeFiles, type Cleaning } from '../folder.ts';
import { freePort } from '../free-port.ts';
import { postOperation } from '../harness.ts';
import { startServed } from '../process.ts';
import { FaultyProxy } from './proxy.ts';

/** A server of the run: one of NATS, a node of the cluster, or a counter. */
export interface ClusterMember {
  readonly name: string;
  readonly kind: 'nats' | 'node' | 'counter';
  /** '' for a server of NATS. */
  readonly url: string;
  readonly folder: string;
  /** Between it and the servers that it connects to. */
  readonly proxies: readonly FaultyProxy[];
  kill(): Promise<void>;
  start(): Promise<void>;
  freeze(): void;
  thaw(): void;
}

/** Three servers of NATS, three nodes and two counters. */
export interface ClusterRun {
  readonly members: readonly ClusterMember[];
  readonly nodes: readonly ClusterMember[];
  readonly counters: readonly ClusterMember[];
  readonly apikey: string;
}

/** The environment that shifts the clocks, and that breaks the code: see clock.ts and broken.ts. */
const preload = (name: string): string => `--import=${new URL(name, import.meta.url).href}`;
const brokenEnv = process.env.BROKEN === undefined ? {} : { NODE_OPTIONS: preload('broken.ts') };

/** Starts all members, and makes an empty cluster of the nodes. */
export async function startCluster(context: Cleaning): Promise<ClusterRun> {
  const folder = await temporaryFolder(context);
  const servers = await startNats(context, { servers: 3 });
  const urls = servers.map(({ url }) => url);
  const settings = { servers: urls, name: 'waymark' } as unknown as Parameters<
    typeof createCluster
  >[0];
  await until(() => createCluster(settings, { id: uuidv7(), replicas: 3 }));
  const nodes: NodeMember[] = [];
  for (const name of ['a', 'b', 'c']) {
    const proxies = await proxiesTo(
      context,
      servers.map(({ port }) => port),
    );
    const named = proxies.map(({ port }) => `nats://127.0.0.1:${port}`).join(', ');
    const more = `[node]\nrole = central\nname = ${name}\n[cluster]\nservers = ${named}\n`;
    const begin = { context, folder, proxies: proxies.map(({ proxy }) => proxy) };
    nodes.push(await startMember(begin, { name, kind: 'node', more, first: nodes.length === 0 }));
  }
  const [first, second] = nodes as [NodeMember, NodeMember];
  const { apikey } = first;
  const counters: NodeMember[] = [];
  for (const [name, follows] of [
    ['shop-1', first],
    ['shop-2', second],
  ] as const) {
    const v = { name, scopes: ['follow', 'event'], node: name };
    const { data } = await postOperation(follows.url, 'svc1.key.insert', v, { apikey });
    const [way] = await proxiesTo(context, [Number(new URL(follows.url).port)]);
    if (way === undefined) throw new Error('there is no proxy');
    const central = `http://127.0.0.1:${way.port}`;
    const more = `[node]\nrole = counter\nname = ${name}\ncentral = ${central}\nkey_file = k\n`;
    const key = (data as { key: string }).key;
    const begin = { context, folder, proxies: [way.proxy] };
    counters.push(await startMember(begin, { name, kind: 'counter', more, key, first: false }));
  }
  const members = [...servers.map(natsMember), ...nodes, ...counters];
  return { members, nodes, counters, apikey };
}

type NodeMember = ClusterMember & { readonly apikey: string };

function natsMember(server: NatsServer): ClusterMember {
  return {
    ...{ name: server.name, kind: 'nats', url: '', folder: '', proxies: [] },
    kill: () => server.kill(),
    start: () => server.start(),
    freeze: () => {
      server.freeze();
    },
    thaw: () => {
      server.thaw();
    },
  };
}

async function proxiesTo(
  context: Cleaning,
  targets: readonly number[],
): Promise<readonly { readonly port: number; readonly proxy: FaultyProxy }[]> {
  const made: { readonly port: number; readonly proxy: FaultyProxy }[] = [];
  for (const target of targets) {
    const port = await freePort();
    const proxy = await FaultyProxy.start(port, target);
    context.after(() => {
      proxy.close();
    });
    made.push({ port, proxy });
  }
  return made;
}

async function startMember(
  {
    context,
    folder: parent,
    proxies,
  }: {
    readonly context: Cleaning;
    readonly folder: string;
    readonly proxies: readonly FaultyProxy[];
  },
  {
    name,
    kind,
    more,
    key,
    first,
  }: {
    readonly name: string;
    readonly kind: 'node' | 'counter';
    readonly more: string;
    readonly key?: string;
    readonly first: boolean;
  },
): Promise<NodeMember> {
  const folder = join(parent, name);
  await mkdir(folder);
  const ini =
    `[server]\nlisten = 127.0.0.1:${await freePort()}\ndata = data\n[log]\naccess = no\n` +
    `[webhook]\nallow_private = 127.0.0.0/8\nretry = 50ms, 200ms\n${more}`;
  await writeFiles(folder, { 'server.ini': ini, ...(key !== undefined && { k: key }) });
  const env = { XDG_DATA_HOME: parent, ...brokenEnv };
  const serve = (isFirst: boolean) =>
    startServed(context, join(folder, 'server.ini'), { first: isFirst, env });
  let served = await serve(first);
  return {
    ...{ name, kind, url: served.url, folder, proxies, apikey: served.adminKey },
    async kill() {
      served.child.kill('SIGKILL');
      await served.closed;
    },
    async start() {
      served = await serve(false);
    },
    freeze: () => {
      served.child.kill('SIGSTOP');
    },
    thaw: () => {
      served.child.kill('SIGCONT');
    },
  };
}
