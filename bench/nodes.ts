// Measures how fast a new node copies a log, how long a large transaction delays the visitors of a
// node, and what hundreds of nodes take at the centre; see bench/README.md.
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createWaymarkClient } from '../src/modules/peers/waymark-client.ts';
import { findPrograms, surroundings } from './machine.ts';
import {
  post,
  startCentre,
  startNode,
  startFollower,
  type Centre,
  type Node,
} from './nodes/members.ts';
import { ruleLines, writeMixedRows } from './nodes/rows.ts';
import { ratioOf, spreadOf } from './figures.ts';
import { cpuMicroseconds, ownBytes } from './proc.ts';
import { spreadText } from './report.ts';
import { createWorkspace } from './workspace.ts';

const scenarios = { copy, large, many, reads } as const;

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    rows: { type: 'string', default: '100000' },
    nodes: { type: 'string', default: '300' },
    seconds: { type: 'string', default: '20' },
  },
});
const rows = Number(options.rows);
const mebibyte = 1024 * 1024;
const writesPerSecond = 100;
const readRounds = 20;
const readsInRound = 4_000;
const readsInFlight = 16;

const workspace = await createWorkspace();
for (const [name, value] of Object.entries(await surroundings(findPrograms()))) {
  console.log(`${name.padEnd(7)} ${value}`);
}
for (const [name, run] of Object.entries(scenarios)) {
  if (options.only === undefined || options.only === name) await run();
}

/** Measures a new replica that copies the log of a centre. */
async function copy(): Promise<void> {
  const fills = {
    imported: undefined,
    mixed: (store: Parameters<typeof writeMixedRows>[0]) => writeMixedRows(store, rows),
  };
  for (const [kind, fill] of Object.entries(fills)) {
    const centre = await startCentre(workspace, `${kind}-centre`, fill);
    if (fill === undefined) await importRules(centre, 'copied');
    const source = await startCentre(workspace, `${kind}-empty-centre`);
    const empty = await startFollower(workspace, source, `${kind}-empty`);
    const emptyUs = await cpuMicroseconds([empty.pid]);
    const before = await cpuMicroseconds([centre.pid]);
    const replica = await startFollower(workspace, centre, `${kind}-copy`);
    const [at, of] = [await cpuMicroseconds([centre.pid]), await cpuMicroseconds([replica.pid])];
    const ms = replica.startMs - empty.startMs;
    print(`copy of ${rows} rows, ${kind}`, {
      'rows/s': (rows / ms) * 1_000,
      'CPU us a row at the replica': (of - emptyUs) / rows,
      'CPU us a row at the centre': (at - before) / rows,
    });
    await Promise.all([empty, source, replica, centre].map((one) => one.stop()));
  }
}

/** Measures a serving replica while it gets an import of many rules. */
async function large(): Promise<void> {
  const centre = await startCentre(workspace, 'large-centre');
  const replica = await startFollower(workspace, centre, 'large-copy');
  await centre.call('userinterface/insert', { path: '/here', content: 'here' });
  const ended = new AbortController();
  const visits = visit(`${replica.url}/here`, ended.signal);
  await wait(1_000);
  const importing = await importRules(centre, 'large');
  const wanted = await seqOf(centre.url, centre.apikey);
  const started = performance.now();
  while ((await seqOf(replica.url, centre.apikey)) < wanted) await wait(20);
  const appliedMs = performance.now() - started;
  ended.abort();
  const { before, longestMs } = await visits;
  print(`a transaction of ${rows} rows reaches a replica`, {
    'ms of the import at the centre': importing,
    'ms until the replica has it': appliedMs,
    'ms, the longest answer of the replica': longestMs,
    'ms, the longest one in the second before': before,
  });
  await Promise.all([replica, centre].map((one) => one.stop()));
}

async function visit(
  url: string,
  signal: AbortSignal,
): Promise<{ readonly before: number; readonly longestMs: number }> {
  const begun = performance.now();
  let [before, longestMs] = [0, 0];
  while (!signal.aborted) {
    const started = performance.now();
    await (await fetch(url)).text();
    const ms = performance.now() - started;
    longestMs = Math.max(longestMs, ms);
    if (started - begun < 900) before = longestMs;
    await wait(1);
  }
  return { before, longestMs };
}

/** Measures a centre that stores some changes each second, and that many nodes follow. */
async function many(): Promise<void> {
  const centre = await startCentre(workspace, 'many-centre');
  await wait(2_000);
  const ownBefore = await ownBytes([centre.pid]);
  const idle = await load(centre);
  const ended = new AbortController();
  const received = { rows: 0 };
  const count = Number(options.nodes);
  const client = createWaymarkClient(centre.url, { timeoutMs: 30_000, fields: () => ({}) });
  const following: Promise<void>[] = [];
  for (let n = 0; n < count; n += 1) {
    const node = `node-${n}`;
    const apikey = await centre.keyFor(node);
    following.push(follow({ client, node, apikey, signal: ended.signal, received }));
  }
  await wait(2_000);
  received.rows = 0;
  const busy = await load(centre);
  const after = await ownBytes([centre.pid]);
  ended.abort();
  await Promise.all(following);
  print(`${count} nodes follow ${writesPerSecond} changes a second`, {
    'KiB of memory a node at the centre': (after - ownBefore) / count / 1_024,
    'MiB of memory of the centre without them': ownBefore / mebibyte,
    'CPU ms a second without them': idle,
    'CPU ms a second with them': busy,
    'CPU us a node and second': ((busy - idle) * 1_000) / count,
    'rows received a second': received.rows / Number(options.seconds),
  });
  await centre.stop();
}

/**
 * Compares the CPU time of a stored page in each role with that of a single machine, in rounds of
 * changing order. A second single machine shows how much two equal processes differ.
 */
async function reads(): Promise<void> {
  const page = { path: '/page', kind: 'content', content: 'x'.repeat(1_024) };
  const single = async (name: string): Promise<Node> =>
    startNode(workspace, await workspace.folderFor(name), '', [page]);
  const centre = await startCentre(workspace, 'reads-centre');
  const machines = {
    'a single machine': await single('reads-single'),
    'another single machine': await single('reads-other'),
    'a centre': centre,
    'a replica': await startFollower(workspace, centre, 'reads-replica'),
    'a counter': await startFollower(workspace, centre, 'reads-counter', 'counter'),
  };
  await centre.call('userinterface/insert', page);
  for (const { url } of Object.values(machines)) {
    while (!(await fetch(`${url}/page`)).ok) await wait(20);
  }

  const found = new Map<string, number[]>(Object.keys(machines).map((name) => [name, []]));
  for (let round = 0; round < readRounds; round += 1) {
    const turned = Object.entries(machines);
    turned.push(...turned.splice(0, round % turned.length));
    for (const [name, machine] of turned) {
      const us = await readPages(machine);
      // In the first rounds, V8 still compiles.
      if (round >= readRounds / 4) found.get(name)?.push(us);
    }
  }
  const [ofSingle = []] = found.values();
  console.log('\nCPU us of a stored page: median, least and most; the ratio to a single machine');
  for (const [name, us] of found) {
    const [own, ratio] = [spreadText(spreadOf(us), 1), spreadText(ratioOf(us, ofSingle), 2)];
    console.log(`${own.padStart(20)} ${ratio.padStart(20)} ${name}`);
  }
  await Promise.all(Object.values(machines).map((one) => one.stop()));
}

/** Requests the page many times; resolves to the server's CPU time of one in microseconds. */
async function readPages({ url, pid }: Node): Promise<number> {
  const before = await cpuMicroseconds([pid]);
  const read = async (): Promise<void> => {
    for (let n = 0; n < readsInRound / readsInFlight; n += 1) {
      await (await fetch(`${url}/page`)).arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: readsInFlight }, read));
  return ((await cpuMicroseconds([pid])) - before) / readsInRound;
}

/** Follows the log as a node does, and reports as often. */
async function follow({
  client,
  node,
  apikey,
  signal,
  received,
}: {
  readonly client: ReturnType<typeof createWaymarkClient>;
  readonly node: string;
  readonly apikey: string;
  readonly signal: AbortSignal;
  readonly received: { rows: number };
}): Promise<void> {
  const { data } = await client.call('svc1.log.end', { v: { node }, apikey });
  const { log, seq, txn } = data as { log: string; seq: number; txn: string };
  const report = (): void => {
    const v = { node, role: 'replica', version: 'bench', seq, now: Date.now() };
    const more = { waiting: 0, refused: 0, deliveries: {} };
    void client.call('svc1.node.report', { v: { ...v, ...more }, apikey }).catch(() => undefined);
  };
  const reporting = setInterval(report, 10_000);
  const v = { node, log, seq, txn };
  for await (const packet of client.packets('svc1.log.follow', { v, apikey }, signal)) {
    if (Array.isArray(packet.rows)) received.rows += packet.rows.length;
  }
  clearInterval(reporting);
}

/** Writes for some seconds; resolves to the centre's CPU time in milliseconds a second. */
async function load({ pid, call }: Centre): Promise<number> {
  const started = performance.now();
  const before = await cpuMicroseconds([pid]);
  const writes: Promise<unknown>[] = [];
  const total = Number(options.seconds) * writesPerSecond;
  for (let n = 0; n < total; n += 1) {
    writes.push(call('event/insert', { type: 'shop.sale', data: { n, total: '12.50' } }));
    const dueMs = started + ((n + 1) * 1_000) / writesPerSecond;
    await wait(Math.max(0, dueMs - performance.now()));
  }
  await Promise.all(writes);
  return ((await cpuMicroseconds([pid])) - before) / 1_000 / Number(options.seconds);
}

/** Imports page rules in one transaction; resolves to the milliseconds. */
async function importRules({ call }: Centre, folder: string): Promise<number> {
  const started = performance.now();
  await call('userinterface/import', { ndjson: ruleLines(rows, folder) });
  return performance.now() - started;
}

async function seqOf(url: string, apikey: string): Promise<number> {
  return Number((await post(url, 'server/status', {}, apikey)).seq);
}

function print(title: string, figures: Readonly<Record<string, number>>): void {
  console.log(`\n${title}`);
  for (const [name, value] of Object.entries(figures)) {
    console.log(`${value.toFixed(value < 100 ? 1 : 0).padStart(10)} ${name}`);
  }
}
