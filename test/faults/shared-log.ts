// `npm run faults:log`: three nodes append to the log of a cluster while its servers are killed and
// stopped, one or two at a time. At the end, each node must have seen the same entries, each once,
// with everything that was acknowledged. `npm run faults:log -- 50` injects 50 faults.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Appender, startLog, type LogRig } from '../modules/cluster/rig.ts';
import { until } from '../modules/cluster/nats.ts';
import type { Cleaning } from '../folder.ts';

const faults = Number(process.argv[2] ?? 20);
const cleanups: (() => unknown)[] = [];
const context: Cleaning = {
  after: (clean) => {
    cleanups.unshift(clean);
  },
};

try {
  await run();
} finally {
  for (const clean of cleanups) await clean();
}

async function run(): Promise<void> {
  const rig = await startLog(context, 3);
  const nodes: Appender[] = [];
  for (let n = 0; n < 3; n += 1) nodes.push(new Appender(await rig.open()));
  const stop = new AbortController();
  const writing = nodes.map((node, at) => write(node, at, stop.signal));
  for (let n = 1; n <= faults; n += 1) await inject(rig, nodes, n);
  stop.abort();
  await Promise.all(writing);
  check(nodes, await allSeen(rig, nodes));
}

/** Appends small entries, and now and then one of several megabytes. */
async function write(node: Appender, at: number, signal: AbortSignal): Promise<void> {
  for (let n = 0; !signal.aborted; n += 1) {
    await node.appendOnce(`${at}-${n}-${n % 200 === 199 ? 'x'.repeat(3_000_000) : ''}`);
  }
}

/**
 * Kills or stops one or two servers, starts or continues them, and prints what the nodes noticed.
 */
async function inject(rig: LogRig, nodes: readonly Appender[], n: number): Promise<void> {
  await delay(randomInt(200, 1_500));
  const leader = await rig.leader();
  const others = rig.servers.filter((server) => server !== leader);
  const isLeader = n % 3 !== 0;
  const first = isLeader ? leader : (others[randomInt(2)] ?? leader);
  const second = rig.servers.find((server) => server !== first);
  const chosen = n % 5 === 0 && second !== undefined ? [first, second] : [first];
  const isKill = n % 2 === 0;
  const awayMs = randomInt(500, 9_000);
  const before = countOf(nodes);
  if (isKill) await Promise.all(chosen.map((server) => server.kill()));
  else for (const server of chosen) server.freeze();
  await delay(awayMs);
  if (isKill) await Promise.all(chosen.map((server) => server.start()));
  else for (const server of chosen) server.thaw();
  const started = performance.now();
  await until(() => {
    assert.ok(countOf(nodes) > before + 30, 'nothing was appended after the fault');
    return Promise.resolve();
  }, 60_000);
  const names = chosen.map(({ name }) => name).join(' and ');
  const what = `${isKill ? 'killed' : 'stopped'} ${names}${isLeader ? ' (leader)' : ''}`;
  const went = `appends go on ${Math.round(performance.now() - started)} ms later`;
  process.stdout.write(`${n}: ${what} for ${awayMs} ms; ${went}; ${countOf(nodes)} appended\n`);
}

function countOf(nodes: readonly Appender[]): number {
  return nodes.reduce((sum, { acknowledged }) => sum + acknowledged.size, 0);
}

/** Resolves to the end of the log when all nodes have seen it. */
async function allSeen(rig: LogRig, nodes: readonly Appender[]): Promise<number> {
  const shared = await rig.open();
  const end = await until(() => shared.end(), 60_000);
  await Promise.all(nodes.map((node) => node.reach(end)));
  await Promise.all(nodes.map((node) => node.stop()));
  return end;
}

function check(nodes: readonly Appender[], end: number): void {
  const [one, ...others] = nodes.map(({ seen }) =>
    seen.map(({ after, position, data }) => `${after} ${position} ${Buffer.from(data).toString()}`),
  );
  for (const other of others) assert.deepEqual(other, one);
  const [node] = nodes;
  assert.ok(node !== undefined);
  let last = 0;
  const texts = new Map<string, number>();
  for (const { after, position, data } of node.seen) {
    assert.equal(after, last, 'a gap');
    last = position;
    const text = Buffer.from(data).toString();
    assert.ok(!texts.has(text), `appended twice: ${text.slice(0, 40)}`);
    texts.set(text, position);
  }
  assert.equal(last, end);
  for (const { acknowledged } of nodes) {
    for (const [text, position] of acknowledged) assert.equal(texts.get(text), position, 'lost');
  }
  const [lost, unknown] = [
    nodes.reduce((sum, one) => sum + one.lost, 0),
    nodes.reduce((sum, one) => sum + one.unknown, 0),
  ];
  process.stdout.write(
    `${faults} faults, ${texts.size} entries, ${countOf(nodes)} acknowledged: none lost, none ` +
      `twice, no gap. ${lost} appends lost a race, ${unknown} had an unknown outcome.\n`,
  );
}
