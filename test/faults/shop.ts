// The long fault run of nodes: a centre and two counters in processes of their own, which are killed,
// stopped, cut off and stalled at random moments while sales, edits and imports go on. At the end:
// every acknowledged sale is stored at the centre once and in the order of its counter, and delivered;
// every acknowledged edit is there; no reader saw a part of an import; the logs have no gap, equal
// digests and correct projections. `npm run faults:shop [-- FAULTS]`; exits with 1 at a violation.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { temporaryFolder, writeFiles, type Cleaning } from '../folder.ts';
import { freePort } from '../free-port.ts';
import { postOperation, type Answer } from '../harness.ts';
import { runWaymark, startServed, type Served } from '../process.ts';
import { startFaultyReceiver } from './hook-receiver.ts';
import { FaultyProxy } from './proxy.ts';
import { runsAsked } from './runs.ts';

const faults = runsAsked(process.argv[2]);
const counterNames = ['shop-1', 'shop-2'] as const;
const rulesTogether = 20;
/** The time between faults, and how long a stopped process or a broken connection stays so. */
const betweenMsMax = 400;
const faultMsMax = 2_500;
const healedMsMax = 60_000;

/** The environment that breaks the code: see broken.ts. */
const brokenEnv =
  process.env.BROKEN === undefined
    ? {}
    : { NODE_OPTIONS: `--import=${new URL('broken.ts', import.meta.url).href}` };

const cleanings: (() => unknown)[] = [];
const context: Cleaning = {
  after: (clean) => {
    cleanings.unshift(clean);
  },
};

/** A process of the run, which is started again when it was killed. */
interface Member {
  readonly name: string;
  readonly url: string;
  readonly folder: string;
  served: Served;
  start(first: boolean): Promise<Served>;
}

const violations: string[] = [];
/** A run ends at the first violation. */
const isSound = (): boolean => violations.length === 0;
const counts = { sales: 0, edits: 0, imports: 0, reads: 0 };
let isLoading = true;
let latestImport = 0;

try {
  await run();
} finally {
  isLoading = false;
  for (const clean of cleanings) await clean();
}
process.stdout.write(`${JSON.stringify({ faults, ...counts, violations })}\n`);
process.exit(violations.length === 0 ? 0 : 1);

async function run(): Promise<void> {
  const receiver = await startFaultyReceiver();
  context.after(() => {
    receiver.close();
  });
  const folder = await temporaryFolder(context);
  const { centre, counters, proxies, apikey } = await startAll(folder);
  const call = (at: Member, name: string, v: object, vk: string) =>
    repeat(() => postOperation(at.url, name, v, { apikey, vk }));
  for (const shop of counterNames) {
    const hook = { event: ['shop.sale'], url: `${receiver.origin}/${shop}`, where: shop };
    const v = { ...hook, filter: { shop }, retry_limit: 1_000 };
    await call(centre, 'svc1.webhook.insert', v, shop);
  }
  await settled(centre, counters, apikey);

  const sold = new Map(counterNames.map((name) => [name as string, [] as number[]]));
  const taken = new Map(counterNames.map((name) => [name as string, [] as string[]]));
  const edited = new Map<string, number>();
  const load = [
    ...counters.map(async (counter) => {
      for (let n = 1; isLoading; n += 1) {
        const v = { type: 'shop.sale', data: { n, shop: counter.name } };
        const answer = await call(counter, 'svc1.event.insert', v, `${counter.name}-${n}`);
        if (answer === undefined) return;
        sold.get(counter.name)?.push(n);
        taken.get(counter.name)?.push(answer.data?.id as string);
        counts.sales += 1;
        await delay(15);
      }
    }),
    writeRules(centre, counters, call, edited),
    ...counters.map((counter) => watchImports(counter, apikey)),
  ];
  await injectFaults({ centre, counters, proxies });
  isLoading = false;
  for (const proxy of proxies) proxy.heal();
  await Promise.all(load);
  await settled(centre, counters, apikey);
  await check({ centre, counters, apikey, sold, edited });
  for (const [shop, ids] of taken) {
    const came = receiver.of(`/${shop}`);
    for (
      let waitedMs = 0;
      came.events.size < ids.length && waitedMs < healedMsMax && isSound();
      waitedMs += 100
    ) {
      await delay(100);
    }
    const delivered = new Set(came.events.values());
    const missing = ids.filter((id) => !delivered.has(id)).length;
    if (missing > 0) violations.push(`${shop}: ${missing} sales were not delivered`);
    const newest = Math.max(0, ...came.events.keys());
    if (newest !== came.events.size) violations.push(`${shop}: the deliveries have gaps`);
  }
  violations.push(...receiver.violations);
}

async function startAll(folder: string) {
  const env = { XDG_DATA_HOME: folder };
  const port = await freePort();
  const start = (name: string, isBroken: boolean) => (first: boolean) =>
    startServed(context, join(folder, name, 'server.ini'), {
      first,
      env: isBroken ? { ...env, ...brokenEnv } : env,
    });
  const log = '[log]\naccess = no\n[webhook]\nallow_private = 127.0.0.0/8\nretry = 50ms, 200ms\n';
  const ini = (at: number) => `[server]\nlisten = 127.0.0.1:${at}\ndata = data\n${log}`;
  await writeFiles(join(folder, 'centre'), {
    'server.ini': `${ini(port)}[node]\nrole = central\n`,
  });
  const member = async (name: string, at: number): Promise<Member> => ({
    name,
    url: `http://127.0.0.1:${at}`,
    folder: join(folder, name),
    start: start(name, true),
    served: await start(name, true)(name === 'centre'),
  });
  const centre = await member('centre', port);
  const apikey = centre.served.adminKey;
  const counters: Member[] = [];
  const proxies: FaultyProxy[] = [];
  for (const name of counterNames) {
    const { data } = await postOperation(
      centre.url,
      'svc1.key.insert',
      { name, scopes: ['follow', 'event'], node: name },
      { apikey },
    );
    const [own, proxyPort] = [await freePort(), await freePort()];
    proxies.push(await FaultyProxy.start(proxyPort, port));
    const central = `http://127.0.0.1:${proxyPort}`;
    const node = `role = counter\nname = ${name}\ncentral = ${central}\nkey_file = central.key\n`;
    await writeFiles(join(folder, name), {
      'server.ini': `${ini(own)}[node]\n${node}`,
      'central.key': (data as { key: string }).key,
    });
    counters.push(await member(name, own));
  }
  context.after(() => {
    for (const proxy of proxies) proxy.close();
  });
  return { centre, counters, proxies, apikey };
}

/** Repeats a request until it is answered; undefined if the run ends first. */
async function repeat(request: () => Promise<Answer>): Promise<Answer | undefined> {
  for (;;) {
    const answer = await request().catch(() => undefined);
    const code = answer?.error?.code;
    if (answer !== undefined && code !== 'unavailable' && code !== 'bad_gateway') {
      if (code !== undefined) violations.push(`${answer.r}: ${answer.error?.message}`);
      return answer;
    }
    if (!isLoading) return undefined;
    await delay(20);
  }
}

type Call = (at: Member, name: string, v: object, vk: string) => Promise<Answer | undefined>;

/** Inserts, edits and imports page rules at the centre and, passed on, at the counters. */
async function writeRules(
  centre: Member,
  counters: readonly Member[],
  call: Call,
  edited: Map<string, number>,
): Promise<void> {
  const rule = 'svc1.userinterface';
  for (let k = 1; isLoading; k += 1) {
    const at = [centre, ...counters][k % 3] ?? centre;
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

/** Reads the newest imports at a counter: each is there as a whole or not at all. */
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

async function injectFaults({
  centre,
  counters,
  proxies,
}: {
  readonly centre: Member;
  readonly counters: readonly Member[];
  readonly proxies: readonly FaultyProxy[];
}): Promise<void> {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(Math.random() * from.length)] as T;
  for (let fault = 1; fault <= faults && isSound(); fault += 1) {
    const member = pick([centre, ...counters]);
    const proxy = pick(proxies);
    const ms = Math.random() * faultMsMax;
    switch (pick(['kill', 'stop', 'cut', 'reset', 'stall'])) {
      case 'kill':
        member.served.child.kill('SIGKILL');
        await member.served.closed;
        await delay(ms / 4);
        member.served = await member.start(false);
        break;
      case 'stop':
        process.kill(member.served.pid, 'SIGSTOP');
        await delay(ms);
        process.kill(member.served.pid, 'SIGCONT');
        break;
      case 'reset':
        proxy.cut();
        proxy.heal();
        break;
      case 'cut':
        proxy.cut();
        await delay(ms);
        proxy.heal();
        break;
      default:
        proxy.stall();
        await delay(ms);
        proxy.heal();
    }
    await delay(Math.random() * betweenMsMax);
    if (fault % 20 === 0) process.stderr.write(`${fault} faults, ${counts.sales} sales\n`);
  }
}

/** Waits until all outboxes are empty and all logs are equally long. */
async function settled(centre: Member, counters: readonly Member[], apikey: string): Promise<void> {
  const status = async ({ url }: Member) =>
    (await postOperation(url, 'svc1.server.status', {}, { apikey }).catch(() => undefined))?.data;
  for (let waitedMs = 0; waitedMs < healedMsMax && isSound(); waitedMs += 100) {
    const [wanted, ...others] = await Promise.all([centre, ...counters].map(status));
    const isSettled = others.every(
      (one) => one?.seq === wanted?.seq && one?.node.central.outbox.waiting === 0,
    );
    if (wanted !== undefined && isSettled) return;
    await delay(100);
  }
  if (isSound())
    violations.push(`the nodes were not equal ${healedMsMax / 1_000} s after the last fault`);
}

async function check({
  centre,
  counters,
  apikey,
  sold,
  edited,
}: {
  readonly centre: Member;
  readonly counters: readonly Member[];
  readonly apikey: string;
  readonly sold: ReadonlyMap<string, readonly number[]>;
  readonly edited: ReadonlyMap<string, number>;
}): Promise<void> {
  const ask = async (name: string, v: object) =>
    (await postOperation(centre.url, name, v, { apikey })).data;
  const stored = new Map<string, number[]>();
  let before: number | null = null;
  do {
    const v: object = { type: 'shop.sale', limit: 1_000, ...(before !== null && { before }) };
    const page = await ask('svc1.event.list', v);
    for (const { data } of page.rows as { data: { shop: string; n: number } }[]) {
      stored.set(data.shop, [data.n, ...(stored.get(data.shop) ?? [])]);
    }
    before = page.next as number | null;
  } while (before !== null);
  for (const [shop, numbers] of sold) {
    const has = stored.get(shop) ?? [];
    const lost = numbers.filter((n) => !has.includes(n));
    if (lost.length > 0) violations.push(`${shop}: acknowledged sales ${lost.join()} are lost`);
    if (new Set(has).size < has.length) violations.push(`${shop}: a sale is stored twice`);
    if (has.some((n, at) => at > 0 && n <= (has[at - 1] ?? 0))) {
      violations.push(`${shop}: sales are stored in another order`);
    }
  }
  for (const [id, k] of edited) {
    const { content } = await ask('svc1.userinterface.read', { id });
    if (k > 0 && content !== String(k)) violations.push(`the edit ${k} of ${id} is lost`);
  }
  const { seq } = await ask('svc1.server.status', {});
  const digests = new Set<string>();
  for (const { folder, name } of [centre, ...counters]) {
    const words = ['check', '--data', '--seq', String(seq), '--config', join(folder, 'server.ini')];
    const { code, out, err } = await runWaymark(words);
    if (code !== 0) violations.push(`${name}: ${err.trim()}`);
    digests.add(out.trim());
  }
  if (digests.size !== 1) violations.push(`the digests differ: ${[...digests].join(', ')}`);
  assert.ok(counts.sales > 0 && counts.edits > 0, 'there was no load');
}
