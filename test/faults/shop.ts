// The long fault run of nodes: a centre, a replica and two counters, one with workers and one that
// follows the replica, each a process. The run kills, stops, cuts off and stalls them, fills their
// disks and shifts their clocks at random moments, while clients write sales, orders, edits and
// imports. At the end: the centre has every acknowledged sale and order once, sales in the order of
// their counter, and has delivered them; it has every acknowledged edit; no reader saw a part of an
// import; the logs have no gap, equal digests and correct projections. `npm run faults:shop [--
// FAULTS [SEED]]`; exits with 1 at a violation.
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { postOperation, type Answer } from '../harness.ts';
import { startFaultyReceiver } from './hook-receiver.ts';
import { injectFaults, tellOfDisks } from './inject.ts';
import type { Member } from './member.ts';
import { runFaults, type FaultRun } from './runs.ts';
import { checkDelivered, checkStored, untilSettled, type Acknowledged } from './shop-check.ts';
import { startShop, type Shop } from './shop-members.ts';

const rulesTogether = 20;
/** A counter inserts one order after this number of sales. */
const salesPerOrder = 4;

/** Failures after which a caller repeats its request. */
const passing: ReadonlySet<unknown> = new Set(['unavailable', 'bad_gateway', 'storage_full']);

const counts = { sales: 0, orders: 0, edits: 0, imports: 0, reads: 0 };
let violations: string[] = [];
let isLoading = true;
let latestImport = 0;
/** A run ends at the first violation. */
const isSound = (): boolean => violations.length === 0;

await runFaults(process.argv.slice(2), async (run) => {
  ({ violations } = run);
  await sellUnderFaults(run);
  return counts;
});

async function sellUnderFaults(run: FaultRun): Promise<void> {
  const { context } = run;
  const receiver = await startFaultyReceiver();
  context.after(() => {
    receiver.close();
  });
  const shop = await startShop(context);
  const { centre, counters, members, apikey } = shop;
  tellOfDisks(members);
  const call: Call = (at, name, v, vk) =>
    repeat((attempt) => {
      const { url } = 'url' in at ? at : (at[attempt % at.length] ?? centre);
      return postOperation(url, name, v, { apikey, vk });
    });
  for (const { name } of counters) {
    const hook = { event: ['shop.sale'], url: `${receiver.origin}/${name}`, where: name };
    const v = { ...hook, filter: { shop: name }, retry_limit: 1_000 };
    await call(centre, 'svc1.webhook.insert', v, name);
  }
  violations.push(...(await untilSettled(shop)));
  const acknowledged = {
    sold: new Map(counters.map(({ name }) => [name, { numbers: [], ids: [] }])),
    ordered: new Map(counters.map(({ name }) => [name, []])),
    edited: new Map(),
  };
  const load = [
    ...counters.map((counter) => sell(counter, call, acknowledged)),
    writeRules(shop, call, acknowledged.edited),
    ...members.filter((one) => one !== centre).map((one) => watchImports(one, apikey)),
  ];
  await injectFaults(members, run);
  isLoading = false;
  await Promise.all(load);
  assert.ok(counts.sales > 0 && counts.edits > 0, 'there was no load');
  if (isSound()) violations.push(...(await untilSettled(shop)));
  if (isSound()) violations.push(...(await checkStored(shop, acknowledged)));
  for (const [name, { ids }] of isSound() ? acknowledged.sold : []) {
    violations.push(...(await checkDelivered(name, ids, receiver.of(`/${name}`))));
  }
  violations.push(...receiver.violations);
}

/** Repeats a request until it is answered; undefined if the run ends first. */
async function repeat(request: (attempt: number) => Promise<Answer>): Promise<Answer | undefined> {
  for (let attempt = 0; ; attempt += 1) {
    const answer = await request(attempt).catch(() => undefined);
    const code = answer?.error?.code;
    if (answer !== undefined && !passing.has(code)) {
      if (code !== undefined) violations.push(`${answer.r}: ${answer.error?.message}`);
      return answer;
    }
    if (!isLoading) return undefined;
    await delay(20);
  }
}

/** Calls an operation at one member after the other until one answers. */
type Call = (
  at: Member | readonly Member[],
  name: string,
  v: object,
  vk: string,
) => Promise<Answer | undefined>;

/** Inserts events and rows at a counter. */
async function sell(
  counter: Member,
  call: Call,
  { sold, ordered }: Pick<Acknowledged, 'sold' | 'ordered'>,
): Promise<void> {
  const { name } = counter;
  for (let n = 1; isLoading; n += 1) {
    const v = { type: 'shop.sale', data: { n, shop: name } };
    const answer = await call(counter, 'svc1.event.insert', v, `${name}-${n}`);
    if (answer === undefined) return;
    sold.get(name)?.numbers.push(n);
    sold.get(name)?.ids.push(answer.data?.id as string);
    counts.sales += 1;
    if (n % salesPerOrder === 0) {
      const order = { table: 'orders', no: `${name}-${n}` };
      if ((await call(counter, 'svc1.record.insert', order, `order-${name}-${n}`)) === undefined)
        return;
      ordered.get(name)?.push(order.no);
      counts.orders += 1;
    }
    await delay(15);
  }
}

/** Inserts, edits and imports page rules at the centre and, passed on, at the other members. */
async function writeRules(
  { centre, members }: Shop,
  call: Call,
  edited: Map<string, number>,
): Promise<void> {
  const rule = 'svc1.userinterface';
  for (let k = 1; isLoading; k += 1) {
    // A counter may be offline for minutes.
    const at = [...members.slice(k % members.length), ...members];
    const page = { origin: '*', path: `/rule/${k}`, kind: 'content', content: '0' };
    const made = await call(at, `${rule}.insert`, page, `rule-${k}`);
    const id = made?.data?.id as string | undefined;
    if (id === undefined) return;
    edited.set(id, 0);
    const change = await call(at, `${rule}.edit`, { id, content: String(k) }, `edit-${k}`);
    if (change === undefined) return;
    edited.set(id, k);
    counts.edits += 1;
    const lines = Array.from({ length: rulesTogether }, (_, n) =>
      JSON.stringify({ path: `/batch/${k}/${n}`, content: 'x' }),
    );
    await call(centre, `${rule}.import`, { ndjson: lines.join('\n') }, `import-${k}`);
    latestImport = k;
    counts.imports += 1;
    await delay(30);
  }
}

/** Reads the newest imports at a node: it must have each as a whole or not at all. */
async function watchImports({ name, url }: Member, apikey: string): Promise<void> {
  while (isLoading) {
    for (const k of [latestImport, latestImport + 1]) {
      const v = { path: `/batch/${k}/`, limit: 100 };
      const list = postOperation(url, 'svc1.userinterface.list', v, { apikey });
      const rows = (await list.catch(() => undefined))?.data?.rows as unknown[] | undefined;
      if (rows === undefined) continue;
      counts.reads += 1;
      if (rows.length % rulesTogether === 0) continue;
      violations.push(`${name} shows ${rows.length} of ${rulesTogether} rules of import ${k}`);
    }
    await delay(2);
  }
}
