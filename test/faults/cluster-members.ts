import { uuidv7 } from 'uuidv7';
import { clusterStatus, createCluster } from '../../src/modules/cluster/status.ts';
import { startNats, until } from '../modules/cluster/nats.ts';
import { settingsOf } from '../modules/cluster/rig.ts';
import { temporaryFolder, type Cleaning } from '../folder.ts';
import { postOperation } from '../harness.ts';
import { natsMember, portOf, startMember, startProxies, type Member } from './member.ts';
import { SmallDisk } from './small-disk.ts';

/** How long a NATS server may take to get the whole stream, and how often one is started again. */
const currentMsMax = 30_000;
const attemptsMax = 4;

/** Three NATS servers, three nodes, one of them with workers, and two counters. */
export interface ClusterRun {
  readonly members: readonly Member[];
  readonly nodes: readonly Member[];
  readonly counters: readonly Member[];
  readonly apikey: string;
}

const nodePlan = [
  { name: 'a', workers: 1 },
  { name: 'b', workers: 2 },
  { name: 'c', workers: 1 },
] as const;

/** The counters, and the place of the node that each follows. */
const counterPlan = [
  { name: 'shop-1', follows: 0 },
  { name: 'shop-2', follows: 1 },
] as const;

/** Starts all members, and makes an empty cluster of the nodes. */
export async function startCluster(context: Cleaning): Promise<ClusterRun> {
  const parent = await temporaryFolder(context);
  const stores = new Map<string, { folder: string; disk: SmallDisk | undefined }>();
  const prepare = async (folder: string, name: string): Promise<void> => {
    stores.set(name, { folder, disk: await SmallDisk.mount(context, folder) });
  };
  const servers = await startNats(context, { servers: 3, prepare });
  const settings = settingsOf(servers);
  await until(() => createCluster(settings, { id: uuidv7(), replicas: 3 }));
  const natsMembers = servers.map((server): Member => {
    const { folder = '', disk } = stores.get(server.name) ?? {};
    const untilCurrent = (): Promise<void> => untilAllCurrent(settings, natsMembers);
    return natsMember(server, { folder, disk, untilCurrent });
  });
  const nodes: Member[] = [];
  let apikey = '';
  for (const { name, workers } of nodePlan) {
    const proxies = await startProxies(
      context,
      servers.map(({ port }) => port),
    );
    const urls = proxies.map(({ port }) => `nats://127.0.0.1:${port}`).join(', ');
    const ini = `[node]\nrole = central\nname = ${name}\n[cluster]\nservers = ${urls}\n`;
    const isFirst = nodes.length === 0;
    const plan = { name, kind: 'node', workers, ini, proxies, isFirst } as const;
    const node = await startMember(context, parent, plan);
    if (isFirst) ({ apikey } = node);
    nodes.push(node);
  }
  const counters: Member[] = [];
  for (const { name, follows } of counterPlan) {
    const url = nodes[follows]?.url ?? '';
    const v = { name, scopes: ['follow', 'event'], node: name };
    const { data } = await postOperation(url, 'svc1.key.insert', v, { apikey });
    const { key } = data as { key: string };
    const proxies = await startProxies(context, [portOf(url)]);
    const central = `http://127.0.0.1:${proxies[0]?.port}`;
    const ini = `[node]\nrole = counter\nname = ${name}\ncentral = ${central}\nkey_file = k\n`;
    const plan = { name, kind: 'counter', ini, key, proxies } as const;
    counters.push(await startMember(context, parent, plan));
  }
  return { members: [...natsMembers, ...nodes, ...counters], nodes, counters, apikey };
}

/**
 * Resolves once all NATS servers have the whole stream. One that stays behind is started again, as
 * an operator would do, and then replaced (docs/how-to/cluster.md) if the others have all.
 */
async function untilAllCurrent(
  settings: Parameters<typeof clusterStatus>[0],
  members: readonly Member[],
): Promise<void> {
  let behind: readonly string[] = [];
  const check = async (): Promise<void> => {
    behind = [];
    const { servers } = await clusterStatus(settings);
    behind = servers.filter(({ state }) => state !== 'current').map(({ name }) => name);
    const isCurrent = servers.length === members.length && behind.length === 0;
    if (!isCurrent) throw new Error(`NATS servers do not have the whole stream: ${behind.join()}`);
  };
  for (let attempt = 1; ; attempt += 1) {
    try {
      await until(check, currentMsMax);
      return;
    } catch (error) {
      if (attempt > attemptsMax) throw error;
      process.stderr.write(`${String(error)}\n`);
    }
    const isReplaced = attempt > 1 && behind.length === 1;
    for (const member of members.filter(({ name }) => behind.includes(name))) {
      await member.kill();
      if (isReplaced) await member.store?.empty();
      await member.start();
    }
  }
}
