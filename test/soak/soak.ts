// The soak run: an hour of mixed traffic on one server, to see that its memory stops growing. `npm
// run soak [-- SECONDS]`. Prints a line a minute: anonymous memory (without the mapped pages of the
// data file), V8's heap, and the size of each cache according to `server.status`. Exits with 1 if
// memory still grows at the end.
import { readFileSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { MemoryUse } from '../../src/core/report/memory-use.ts';
import { openSocketCalls, type SocketCalls } from '../faults/socket-calls.ts';
import { postOperation } from '../harness.ts';
import { serverFolder, startServed, type Served } from '../process.ts';
import { startPeers, type Peers } from './peers.ts';
import { Visitors, type Counts } from './visitors.ts';

const seconds = Number(process.argv[2] ?? 3_600);
if (!(seconds > 0)) {
  process.stderr.write(`Say a number of seconds above 0, not ${process.argv[2]}.\n`);
  process.exit(2);
}
const mebibyte = 1024 * 1024;
const insertsPerSecond = 50;
const sampleMs = Math.min(60_000, (seconds * 1_000) / 24);
/** The allowed growth from the second quarter of the run to the last one. */
const growthMax = 0.1;

/** Memory of the server at one moment, in bytes. */
interface Sample {
  readonly atSeconds: number;
  readonly anonymous: number;
}

const cleanings: (() => unknown)[] = [];
const context = {
  after: (clean: () => unknown) => {
    cleanings.unshift(clean);
  },
} as Pick<TestContext, 'after'> as TestContext;

try {
  await soak();
} finally {
  for (const clean of cleanings) await clean();
}

async function soak(): Promise<void> {
  const peers = await startPeers();
  context.after(() => {
    peers.close();
  });
  const served = await startSite();
  const { adminKey: apikey, url } = served;
  await insertRules(served, peers);
  const calls = await openSocketCalls(url, apikey);
  const visitors = new Visitors(url);
  const isOver = AbortSignal.timeout(seconds * 1_000);
  const [samples] = await Promise.all([
    watch(served, visitors.counts, isOver),
    visitors.run(isOver),
    insertPages(calls, isOver),
  ]);
  served.child.kill('SIGTERM');
  await served.closed;
  report(samples, visitors.counts, peers);
}

function startSite(): Promise<Served> {
  const ini = `[disk.site]
root = site
[fetch]
allow_private = 127.0.0.0/8
[webhook]
allow_private = 127.0.0.0/8
[log]
access = no
`;
  const files = Object.fromEntries(
    Array.from({ length: 200 }, (_, at) => [`site/file-${at}.html`, `<p>${at}</p>`.repeat(400)]),
  );
  return serverFolder(context, ini, { ...files, 'site/large.bin': Buffer.alloc(mebibyte) }).then(
    ({ iniFile }) => startServed(context, iniFile),
  );
}

async function insertRules({ url, adminKey: apikey }: Served, { origin }: Peers): Promise<void> {
  const insert = async (a: string, v: object): Promise<void> => {
    const { error } = await postOperation(url, a, v, { apikey });
    if (error !== undefined) throw new Error(JSON.stringify(error));
  };
  const kind = 'content.fetch';
  for (const name of ['kept', 'passed']) {
    const enginedata = { source: `${origin}/${name}/*` };
    await insert('svc1.userinterface.insert', { path: `/${name}/*`, kind, enginedata });
  }
  for (let at = 0; at < 500; at += 1) {
    const content = `<h1>Page ${at}</h1>`.repeat(100);
    await insert('svc1.userinterface.insert', {
      path: `/page-${at}.html`,
      kind: 'content',
      content,
    });
  }
  await insert('svc1.webhook.insert', { event: 'record.changed', url: `${origin}/hook` });
}

/** Inserts pages at a steady pace: each is a transaction, a change to follow, and an event. */
async function insertPages(calls: SocketCalls, isOver: AbortSignal): Promise<void> {
  const started = performance.now();
  for (let count = 0; !isOver.aborted; count += 1) {
    const dueMs = (count * 1_000) / insertsPerSecond - (performance.now() - started);
    if (dueMs > 0) await delay(dueMs);
    const v = { path: `/new-${count}.html`, kind: 'content', content: `<p>${count}</p>` };
    const answer = await calls.call({ a: 'svc1.userinterface.insert', v });
    if (answer?.error !== undefined) throw new Error(JSON.stringify(answer.error));
  }
}

async function watch(
  served: Served,
  counts: Counts,
  isOver: AbortSignal,
): Promise<readonly Sample[]> {
  const samples: Sample[] = [];
  const started = performance.now();
  while (!isOver.aborted) {
    await delay(sampleMs);
    const atSeconds = (performance.now() - started) / 1_000;
    const anonymous = anonymousBytes(served.pid);
    samples.push({ atSeconds, anonymous });
    const { data } = await postOperation(
      served.url,
      'svc1.server.status',
      {},
      {
        apikey: served.adminKey,
      },
    );
    const said = memoryText(data.memory as MemoryUse);
    process.stdout.write(
      `${atSeconds.toFixed(0).padStart(5)} s  ${text(anonymous)} MiB anonymous  ` +
        `${counts.answers} answers, ${counts.failures} failed  ${said}\n`,
    );
  }
  return samples;
}

/** The anonymous memory of a process, in bytes (Linux, proc(5), smaps_rollup). */
function anonymousBytes(pid: number): number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(/^Anonymous:\s+(\d+) kB/m.exec(rollup)?.[1]) * 1024;
}

function report(samples: readonly Sample[], counts: Counts, peers: Peers): void {
  const quarter = (from: number): number => {
    const part = samples.filter(
      ({ atSeconds }) =>
        atSeconds >= (seconds * from) / 4 && atSeconds < (seconds * (from + 1)) / 4,
    );
    return median(part.map(({ anonymous }) => anonymous));
  };
  const [second, last] = [quarter(1), quarter(3)];
  const grows = last > second * (1 + growthMax);
  process.stdout.write(
    `Anonymous memory, medians of quarters: ${[0, 1, 2, 3].map((at) => text(quarter(at))).join(', ')} MiB. ` +
      `${counts.answers} answers, ${counts.failures} failed, ${peers.delivered()} deliveries. ` +
      `${grows ? 'Memory still grows.' : 'Memory has reached a plateau.'}\n`,
  );
  if (grows || counts.failures > 0) process.exitCode = 1;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

function text(bytes: number): string {
  return (bytes / mebibyte).toFixed(0);
}

/** V8's heap, buffers, and the size of each cache, in MiB. */
function memoryText({ heap_bytes, external_bytes, caches }: MemoryUse): string {
  const each = caches.map(({ name, bytes }) => `${name} ${text(bytes)}`);
  return `heap ${text(heap_bytes)}, external ${text(external_bytes)}, ${each.join(', ')}`;
}
