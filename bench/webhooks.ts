// Measures webhook deliveries: rate and latency, with failing receivers, and with a million
// messages that wait; see bench/README.md.
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { surroundings, findPrograms } from './machine.ts';
import { freePorts } from './processes.ts';
import { cpuMicroseconds, ownBytes, residentBytes } from './proc.ts';
import { percentilesOf, type Percentiles } from './rules/matching.ts';
import { openService, type Service } from './rules/service.ts';
import { firstKey, waymark } from './servers/waymark.ts';
import { addHooks, insertEvents, insertEventsAtRate } from './webhooks/events.ts';
import { startReceivers, type Receivers } from './webhooks/receiver.ts';
import { createWorkspace } from './workspace.ts';

const scenarios = { throughput, latency, sick, pending } as const;

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    seconds: { type: 'string', default: '10' },
    pending: { type: 'string', default: '1000000' },
  },
});
const seconds = Number(options.seconds);
const mebibyte = 1024 * 1024;
const ini = '[webhook]\nallow_private = 127.0.0.0/8\n';

const workspace = await createWorkspace();
for (const [name, value] of Object.entries(await surroundings(findPrograms()))) {
  console.log(`${name.padEnd(7)} ${value}`);
}
const receivers = await startReceivers();
for (const [name, run] of Object.entries(scenarios)) {
  if (options.only === undefined || options.only === name) await run(receivers);
}
receivers.stop();

/** The server of a scenario. */
interface Bench {
  readonly service: Service;
  readonly pids: readonly number[];
  stop(): Promise<void>;
}

async function startBench(name: string, urls: readonly string[]): Promise<Bench> {
  const folder = await workspace.folderFor(name);
  const [port = 0] = await freePorts(1);
  const place = { folder, port, core: undefined };
  const server = waymark(place, { root: workspace.diskRoot, rules: [], ini });
  const { url, pids } = await server.start();
  const service = await openService(url, await firstKey(join(folder, 'stderr.log')));
  await addHooks(service, urls);
  return {
    service,
    pids,
    async stop() {
      service.close();
      await server.stop();
    },
  };
}

/** Measures the highest rate of deliveries: a thousand events to each of 64 hooks. */
async function throughput({ fastUrl, begin, until }: Receivers): Promise<void> {
  const hooks = 64;
  const bench = await startBench('throughput', repeated(fastUrl, hooks));
  await insertEvents(bench.service, { events: 50, inFlight: 50 });
  await until(50 * hooks);
  begin();
  const events = 100 * seconds;
  const cpuBefore = await cpuMicroseconds(bench.pids);
  const started = performance.now();
  await insertEvents(bench.service, { events, inFlight: 64 });
  const { deliveries } = await until(events * hooks);
  const tookSeconds = (performance.now() - started) / 1000;
  const cpu = (await cpuMicroseconds(bench.pids)) - cpuBefore;
  console.log(
    `\n${deliveries} deliveries of ${events} events to ${hooks} hooks: ` +
      `${(deliveries / tookSeconds).toFixed(0)}/s, ${(cpu / deliveries).toFixed(0)} CPU µs each, ` +
      `${Math.round(cpu / 1e4 / tookSeconds)} % of a core`,
  );
  await bench.stop();
}

/** Measures the time from an event to its receipt, at a thousand a second. */
async function latency({ fastUrl, begin, until }: Receivers): Promise<void> {
  const bench = await startBench('latency', [fastUrl]);
  await insertEventsAtRate(bench.service, { perSecond: 1_000, seconds: 1 });
  await until(1_000);
  begin();
  const events = await insertEventsAtRate(bench.service, { perSecond: 1_000, seconds });
  const { latenciesMs } = await until(events);
  console.log(`\nFrom event to receipt, 1,000/s: ${milliseconds(percentilesOf(latenciesMs))}`);
  await bench.stop();
}

/**
 * Compares healthy receivers alone with the same together with failing ones: 10 dead, 10 very slow.
 */
async function sick({ fastUrl, silentUrl, dripUrl, begin, until }: Receivers): Promise<void> {
  const [closed = 0] = await freePorts(1);
  const healthy = repeated(fastUrl, 80);
  const dead = [...repeated(silentUrl, 5), ...repeated(`http://127.0.0.1:${closed}/`, 5)];
  const dripping = repeated(dripUrl, 10);
  const measure = async (name: string, urls: readonly string[]): Promise<readonly number[]> => {
    const bench = await startBench(name, urls);
    const rate = { perSecond: 10, seconds: 2 };
    await insertEventsAtRate(bench.service, rate);
    await until(20 * healthy.length);
    begin();
    const events = await insertEventsAtRate(bench.service, { ...rate, seconds });
    const { latenciesMs } = await until(events * healthy.length);
    await bench.stop();
    return latenciesMs;
  };
  const all: { alone: number[]; beside: number[] } = { alone: [], beside: [] };
  // Each event goes to all hooks at once, so one slow moment of the machine decides a p99: many
  // rounds.
  for (let round = 1; round <= 7; round += 1) {
    begin();
    const alone = await measure(`alone-${round}`, healthy);
    begin();
    const beside = await measure(`beside-${round}`, [...healthy, ...dead, ...dripping]);
    all.alone.push(...alone);
    all.beside.push(...beside);
    printBoth(`Round ${round}`, alone, beside);
  }
  printBoth('All rounds', all.alone, all.beside);
}

function printBoth(what: string, alone: readonly number[], beside: readonly number[]): void {
  const [a, b] = [percentilesOf(alone), percentilesOf(beside)];
  console.log(
    `\n${what}, 80 healthy hooks, 800 deliveries/s: alone ${milliseconds(a)}; ` +
      `with 10 dead and 10 slow ones ${milliseconds(b)}: p99 × ${(b.p99 / a.p99).toFixed(2)}`,
  );
}

/** Measures the start and the memory of a server with a million waiting deliveries. */
async function pending({ silentUrl }: Receivers): Promise<void> {
  const hooks = 100;
  const events = Math.ceil(Number(options.pending) / hooks);
  const bench = await startBench('pending', repeated(silentUrl, hooks));
  await insertEvents(bench.service, { events, inFlight: 64 });
  await bench.stop();
  const folder = await workspace.folderFor('pending');
  const [port = 0] = await freePorts(1);
  const again = waymark(
    { folder, port, core: undefined },
    { root: workspace.diskRoot, rules: [], ini },
  );
  const started = performance.now();
  const { pids } = await again.start();
  const startMs = performance.now() - started;
  await wait(5_000);
  const [resident, own] = [await residentBytes(pids), await ownBytes(pids)];
  console.log(
    `\n${hooks * events} deliveries waiting: ready after ${startMs.toFixed(0)} ms, ` +
      `${(resident / mebibyte).toFixed(0)} MiB resident, ` +
      `${(own / mebibyte).toFixed(0)} MiB of them its own`,
  );
  await again.stop();
}

function repeated(url: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `${url}?${at}`);
}

function milliseconds({ median, p99 }: Percentiles): string {
  return `median ${median.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`;
}
