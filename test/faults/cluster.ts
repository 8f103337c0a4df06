// The long fault run of a cluster: three NATS servers, three nodes and two counters. Processes are
// killed and stopped, connections cut and stalled at random moments, while clients write at random
// nodes. At the end: all writes were linearizable (history.ts), every acknowledged event is stored
// once and delivered in order without gaps, no reader saw a part of an import, and the logs of all
// nodes and counters have equal digests and correct projections.
// `npm run faults:cluster [-- FAULTS [SEED]]`; exits with 1 at a violation.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findNatsServer, noServer } from '../modules/cluster/nats-server.ts';
import { postOperation, type Answer } from '../harness.ts';
import { runWaymark } from '../process.ts';
import { startCluster, type ClusterRun } from './cluster-members.ts';
import { linearizabilityViolations, type ClientWrite, type LoggedWrite } from './history.ts';
import { startFaultyReceiver, type Came, type FaultyReceiver } from './hook-receiver.ts';
import { injectFaults, tellOfDisks } from './inject.ts';
import type { Member } from './member.ts';
import { runFaults, type FaultRun } from './runs.ts';

const records = 4;
const writersPerNode = 2;
const rulesTogether = 20;
/**
 * Each gets an ordered hook for its own events: a hook that sends one message at a time could not
 * keep up with all events, because its receiver refuses many.
 */
const orderedShops = ['a', 'shop-1'] as const;
const healedMsMax = 90_000;
/** The share of answers that a client does not get. */
const lostAnswers = 0.05;
/** Failures after which it is not known whether the change was made. */
const passing: ReadonlySet<unknown> = new Set([
  ...['unavailable', 'bad_gateway', 'storage_full'],
  undefined,
]);

/** A page of the history of a page rule. */
interface HistoryPage {
  readonly rows: readonly {
    readonly seq: number;
    readonly data: { readonly content: string };
  }[];
  readonly next: number | null;
}

/** An event that the cluster has stored. */
interface StoredSale {
  readonly id: string;
  readonly data: { readonly shop: string; readonly n: number };
}

/** The failure of a write whose record has another seq than it demands. */
const refused = 'precondition_failed';

let violations: string[] = [];
const writes: ClientWrite[] = [];
const events = new Map<string, string[]>();
const counts = { writes: 0, conflicts: 0, events: 0, imports: 0, reads: 0, unknown: 0 };
let isLoading = true;
let latestImport = 0;

if (findNatsServer() === undefined) {
  process.stderr.write(`${noServer}\n`);
  process.exit(2);
}
await runFaults(process.argv.slice(2), async (run) => {
  ({ violations } = run);
  await writeUnderFaults(run);
  return counts;
});

async function writeUnderFaults(run: FaultRun): Promise<void> {
  const { context } = run;
  const receiver = await startFaultyReceiver();
  context.after(() => {
    receiver.close();
  });
  const cluster = await startCluster(context);
  const { members, nodes, counters, apikey } = cluster;
  tellOfDisks(members);
  const [first] = nodes as [Member];
  const call = async (name: string, v: object) => {
    const asked = { apikey, vk: JSON.stringify(v), isEnding: () => true };
    const answer = await settle([first.url], name, v, asked);
    if (answer === undefined) throw new Error(`${first.name} does not take changes`);
    assert.equal(answer.error, undefined);
    return answer.data;
  };
  const hook = { event: ['shop.sale'], retry_limit: 1_000 };
  await call('svc1.webhook.insert', { ...hook, url: `${receiver.origin}/all`, where: 'central' });
  for (const shop of orderedShops) {
    const path = `/ordered-${shop}`;
    receiver.of(path).isOrdered = true;
    const ordered = { url: receiver.origin + path, order: true, filter: { shop } };
    await call('svc1.webhook.insert', { ...hook, ...ordered, where: 'central' });
  }
  const ids: string[] = [];
  for (let n = 0; n < records; n += 1) {
    const value = `begin ${n}`;
    const page = { origin: '*', path: `/record/${n}`, kind: 'content', content: value };
    const sentMs = performance.now();
    const data: unknown = await call('svc1.userinterface.insert', page);
    const { id: record, seq: outcome } = data as { id: string; seq: number };
    const answeredMs = performance.now();
    writes.push({ record, value, ifSeq: undefined, sentMs, answeredMs, outcome });
    ids.push(record);
  }
  const load = [
    ...nodes.flatMap((node) =>
      Array.from({ length: writersPerNode }, (_, n) =>
        write(node, { apikey, ids, n, others: nodes.map((one) => one.url) }),
      ),
    ),
    ...[...nodes, ...counters].map((member) => sell(member, apikey)),
    importRules(nodes, apikey),
    ...nodes.map((node) => watchImports(node, apikey)),
  ];
  // What was written before is checked also if the cluster does not become whole again.
  await reported(() => injectFaults(members, run));
  isLoading = false;
  await Promise.all(load);
  for (const check of [
    () => untilSettled(cluster),
    () => checkLogs(cluster, ids),
    () => checkEvents(cluster, receiver),
  ]) {
    await reported(async () => {
      violations.push(...(await check()));
    });
  }
  violations.push(...receiver.violations);
}

/** Adds what a step rejects with to the violations. */
async function reported(step: () => Promise<void>): Promise<void> {
  try {
    await step();
  } catch (error) {
    violations.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
}

/** Edits random records; half of the edits demand the seq that the node has shown before. */
async function write(
  { url, name }: Member,
  {
    apikey,
    ids,
    n,
    others,
  }: {
    readonly apikey: string;
    readonly ids: readonly string[];
    readonly n: number;
    readonly others: readonly string[];
  },
): Promise<void> {
  for (let k = 1; isLoading; k += 1) {
    const record = pick(ids);
    const read = await ask(url, 'svc1.userinterface.read', { id: record }, { apikey });
    const seq = read?.data?.seq as number | undefined;
    if (seq === undefined) {
      await delay(50);
      continue;
    }
    const value = `${name}-${n}-${k}`;
    const ifSeq = Math.random() < 0.5 ? seq : undefined;
    const v = { id: record, content: value, ...(ifSeq !== undefined && { if_seq: ifSeq }) };
    const sentMs = performance.now();
    const answer = await settle([url, ...others], 'svc1.userinterface.edit', v, {
      apikey,
      vk: value,
    });
    const answeredMs = answer === undefined ? Infinity : performance.now();
    const code = answer?.error?.code;
    if (code !== undefined && code !== refused)
      violations.push(`${value}: ${answer?.error?.message}`);
    const outcome = code === refused ? 'conflict' : (answer?.data?.seq as number | undefined);
    writes.push({ record, value, ifSeq, sentMs, answeredMs, outcome });
    if (outcome === undefined) counts.unknown += 1;
    else counts[outcome === 'conflict' ? 'conflicts' : 'writes'] += 1;
    await delay(20);
  }
}

/** Inserts events; those of a counter go into its outbox. */
async function sell({ name, url }: Member, apikey: string): Promise<void> {
  const sold: string[] = [];
  events.set(name, sold);
  for (let n = 1; isLoading; n += 1) {
    const v = { type: 'shop.sale', data: { n, shop: name } };
    const answer = await settle([url], 'svc1.event.insert', v, { apikey, vk: `sale ${name} ${n}` });
    if (answer === undefined) return;
    if (answer.error !== undefined) violations.push(`${name}: ${answer.error.message}`);
    sold.push(answer.data?.id as string);
    counts.events += 1;
    await delay(30);
  }
}

async function importRules(nodes: readonly Member[], apikey: string): Promise<void> {
  for (let k = 1; isLoading; k += 1) {
    const lines = Array.from({ length: rulesTogether }, (_, n) =>
      JSON.stringify({ path: `/batch/${k}/${n}`, content: 'x' }),
    );
    const v = { ndjson: lines.join('\n') };
    const { url } = pick(nodes);
    await settle([url], 'svc1.userinterface.import', v, { apikey, vk: `import ${k}` });
    latestImport = k;
    counts.imports += 1;
    await delay(200);
  }
}

async function watchImports({ name, url }: Member, apikey: string): Promise<void> {
  while (isLoading) {
    for (const k of [latestImport, latestImport + 1]) {
      const v = { path: `/batch/${k}/`, limit: 100 };
      const list = await ask(url, 'svc1.userinterface.list', v, { apikey });
      const rows = list?.data?.rows as unknown[] | undefined;
      if (rows === undefined) continue;
      counts.reads += 1;
      if (rows.length % rulesTogether === 0) continue;
      violations.push(`${name} shows ${rows.length} of ${rulesTogether} rules of import ${k}`);
    }
    await delay(20);
  }
}

/** A request that may fail in any way. */
function ask(
  url: string,
  name: string,
  v: object,
  options: { readonly apikey: string; readonly vk?: string },
): Promise<Answer | undefined> {
  return postOperation(url, name, v, options).catch(() => undefined);
}

/**
 * Repeats a request with its vk until its result is known, or some time after the run ends; at
 * another node if there are several. Some answers are dropped on purpose.
 */
async function settle(
  urls: readonly string[],
  name: string,
  v: object,
  {
    isEnding = () => !isLoading,
    ...options
  }: {
    readonly apikey: string;
    readonly vk: string;
    readonly isEnding?: () => boolean;
  },
): Promise<Answer | undefined> {
  let lastMs: number | undefined;
  let isLost = Math.random() < lostAnswers;
  for (let attempt = 0; ; attempt += 1) {
    const url = attempt === 0 ? urls[0] : pick(urls);
    const answer = await ask(url ?? '', name, v, options);
    const code = answer?.error?.code;
    const isKnown = answer !== undefined && (code === undefined || !passing.has(code));
    if (isKnown && !isLost) return answer;
    if (isKnown) isLost = false;
    if (isEnding()) lastMs ??= performance.now() + healedMsMax;
    if (lastMs !== undefined && performance.now() > lastMs) return undefined;
    if (!isKnown) await delay(50);
  }
}

async function untilSettled({ nodes, counters, apikey }: ClusterRun): Promise<readonly string[]> {
  const members = [...nodes, ...counters];
  let states: unknown[] = [];
  for (let waitedMs = 0; waitedMs < healedMsMax; waitedMs += 200) {
    const answers = await Promise.all(
      members.map(({ url }) => ask(url, 'svc1.server.status', {}, { apikey })),
    );
    const statuses = answers.map((answer) => answer?.data);
    states = statuses.map((one) => ({ seq: one?.seq, node: one?.node }));
    const [wanted] = statuses;
    const isSettled = statuses.every((one, at) => {
      const waiting = at < nodes.length ? 0 : one?.node?.central?.outbox?.waiting;
      return one !== undefined && one.seq === wanted?.seq && waiting === 0;
    });
    if (isSettled) return [];
    await delay(200);
  }
  return [`the nodes were not equal after ${healedMsMax / 1_000} s: ${JSON.stringify(states)}`];
}

async function checkLogs(cluster: ClusterRun, ids: readonly string[]): Promise<readonly string[]> {
  const { nodes, counters, apikey } = cluster;
  const [{ url }] = nodes as [Member];
  const log: LoggedWrite[] = [];
  for (const record of ids) {
    for (let before: number | null = null; ;) {
      const v = { id: record, limit: 1_000, ...(before !== null && { before }) };
      const asked = { apikey, qk: 'history' };
      const { data } = await postOperation(url, 'svc1.userinterface.read', v, asked);
      const { rows, next } = data as unknown as HistoryPage;
      for (const { seq, data: fields } of rows) log.push({ seq, record, value: fields.content });
      if (next === null) break;
      before = next;
    }
  }
  log.sort((a, b) => a.seq - b.seq);
  const found = [...linearizabilityViolations(writes, log)];
  const seq = (await postOperation(url, 'svc1.server.status', {}, { apikey })).data?.seq as number;
  const digests = new Set<string>();
  for (const { folder, name } of [...nodes, ...counters]) {
    const words = ['check', '--data', '--seq', String(seq), '--config', join(folder, 'server.ini')];
    const { code, out, err } = await runWaymark(words);
    if (code !== 0) found.push(`${name}: ${err.trim()}`);
    digests.add(out.trim());
  }
  if (digests.size !== 1) found.push(`the digests differ: ${[...digests].join(', ')}`);
  return found;
}

/** Each event is stored once and delivered, in the order of the log if the hook demands it. */
async function checkEvents(
  { nodes, apikey }: ClusterRun,
  receiver: FaultyReceiver,
): Promise<readonly string[]> {
  const [{ url }] = nodes as [Member];
  const stored: StoredSale[] = [];
  for (let before: number | undefined; ;) {
    const v = { type: 'shop.sale', limit: 1_000, ...(before !== undefined && { before }) };
    const { data } = await postOperation(url, 'svc1.event.list', v, { apikey });
    const { rows, next } = data as { rows: StoredSale[]; next: number | null };
    stored.push(...rows);
    if (next === null) break;
    before = next;
  }
  stored.reverse();
  const found: string[] = [];
  const has = new Set(stored.map(({ id }) => id));
  if (has.size !== stored.length) found.push('an event is stored twice');
  for (const [name, sold] of events) {
    const lost = sold.filter((id) => !has.has(id)).length;
    if (lost > 0) found.push(`${name}: ${lost} events are lost`);
    const numbers = stored.filter(({ data }) => data.shop === name).map(({ data }) => data.n);
    const isInOrder = numbers.every((n, at) => at === 0 || n > (numbers[at - 1] ?? 0));
    if (!isInOrder) found.push(`${name}: events are stored in another order`);
  }
  found.push(...(await undelivered(receiver.of('/all'), stored)));
  for (const shop of orderedShops) {
    const own = stored.filter(({ data }) => data.shop === shop);
    found.push(...(await undelivered(receiver.of(`/ordered-${shop}`), own)));
  }
  return found;
}

/** Waits until a hook has delivered all its events; returns what is missing or in another order. */
async function undelivered(came: Came, wanted: readonly StoredSale[]): Promise<readonly string[]> {
  // A hook with `order` is slow, because its receiver refuses many.
  let size = -1;
  for (let waitedMs = 0; came.events.size < wanted.length && waitedMs < healedMsMax;) {
    if (came.events.size > size) waitedMs = 0;
    size = came.events.size;
    await delay(100);
    waitedMs += 100;
  }
  const delivered = new Set(came.events.values());
  const missing = wanted.filter(({ id }) => !delivered.has(id)).length;
  const bySeq = [...came.events].toSorted(([a], [b]) => a - b).map(([, id]) => id);
  const hasGap = bySeq.some((id, at) => id !== wanted[at]?.id);
  return [
    ...(missing > 0 ? [`${came.path}: ${missing} events were not delivered`] : []),
    ...(hasGap ? [`${came.path}: another order, or a gap`] : []),
  ];
}

function pick<T>(from: readonly T[]): T {
  return from[Math.floor(Math.random() * from.length)] as T;
}
