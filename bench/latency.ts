// Latency at a constant rate over a thousand connections, compared with nginx; see bench/README.md.
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { ratioOf, spreadOf } from './figures.ts';
import { sendAtConstantRate, buildGenerator, type SteadyResult } from './latency/steady.ts';
import { wrk } from './load.ts';
import { chooseCores, findPrograms, surroundings } from './machine.ts';
import type { Contestant } from './measure.ts';
import { cpuMicroseconds } from './proc.ts';
import { freePorts } from './processes.ts';
import { spreadText } from './report.ts';
import { scenarios, type Scenario } from './scenarios.ts';
import { nginx } from './servers/nginx.ts';
import { waymark } from './servers/waymark.ts';
import { createWorkspace, rulesFor } from './workspace.ts';

/** A file system in memory, on Linux. */
const memoryFolder = '/dev/shm';

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    connections: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '4' },
    rate: { type: 'string' },
    folder: { type: 'string', default: existsSync(memoryFolder) ? memoryFolder : tmpdir() },
  },
});
const connections = Number(options.connections);
const ids = ['file-1k', 'file-100k', 'page-1k'];
const shareOfCapacity = 0.7;

/** One server in one round. */
interface Round extends SteadyResult {
  /** CPU time of the server's processes, divided by the time that passed. */
  readonly busy: number;
}

const programs = findPrograms();
if (programs.nginx === undefined || programs.wrk === undefined) {
  throw new Error('This benchmark needs nginx and wrk: apt-get install nginx-light wrk');
}
const generator = await buildGenerator();
const cores = await chooseCores();
for (const [name, value] of Object.entries(await surroundings(programs))) {
  console.log(`${name.padEnd(7)} ${value}`);
}
console.log(`logs    in ${options.folder}`);
const workspace = await createWorkspace(options.folder);
const { folder, folderFor, diskRoot, peerRoot } = workspace;
const parts = { core: cores.load, folder };
const load = wrk(programs.wrk, parts);
const [port = 0, peerPort = 0] = await freePorts(2);
const source = 'http://127.0.0.1:9';
const place = { core: cores.server, source };
const servers = [
  waymark(
    { ...place, folder: await folderFor('waymark'), port },
    { root: diskRoot, rules: rulesFor(source) },
  ),
  nginx(
    programs.nginx,
    { ...place, folder: await folderFor('nginx'), port: peerPort },
    // Debian's default of 768 is too low for this benchmark.
    { root: peerRoot, workerConnections: 2 * connections },
  ),
];
const contestants: Contestant[] = [];
for (const server of servers) {
  contestants.push({ name: server.name, server: await server.start() });
}
const chosen = scenarios.filter(({ id }) => ids.includes(id) && id.includes(options.only));
for (const scenario of chosen) await measure(scenario);
for (const server of servers) await server.stop();

async function measure(scenario: Scenario): Promise<void> {
  console.log(`\n${scenario.title}, ${connections} keep-alive connections`);
  const rate = await chooseRate(scenario);
  const rounds = new Map<string, Round[]>(contestants.map(({ name }) => [name, []]));
  for (let round = 0; round <= Number(options.rounds); round += 1) {
    for (const contestant of contestants) {
      const taken = await measureRound(contestant, scenario, rate);
      // V8 compiles the code during the first round.
      if (round > 0) rounds.get(contestant.name)?.push(taken);
    }
  }
  for (const [name, taken] of rounds) console.log(roundsText(name, taken));
  const [ours = [], theirs = []] = rounds.values();
  for (const figure of ['p50Ms', 'p99Ms'] as const) {
    const ratio = ratioOf(of(ours, figure), of(theirs, figure));
    console.log(`  Waymark/nginx ${figure.slice(0, 3)} ${spreadText(ratio, 2)}`);
  }
}

/** The rate of requests to both servers, unless given: a share of the lower capacity. */
async function chooseRate({ path }: Scenario): Promise<number> {
  const capacities: number[] = [];
  for (const { name, server } of contestants) {
    const order = { url: server.url + path, headers: {}, connections, seconds: 3 };
    await load.run(order);
    const { requests, seconds } = await load.run(order);
    if (requests === 0) throw new Error(`${name} answered nothing in ${seconds} s`);
    capacities.push(requests / seconds);
    console.log(`  ${name} answers at most ${(requests / seconds).toFixed(0)}/s`);
  }
  const capacity = Math.min(...capacities);
  const rate = Number(options.rate ?? shareOfCapacity * capacity);
  const share = Math.round((100 * rate) / capacity);
  console.log(`  rate ${rate.toFixed(0)}/s, ${share} % of the lower`);
  return rate;
}

async function measureRound(
  { server: { url, pids } }: Contestant,
  { path, status, contentBytes = 0 }: Scenario,
  rate: number,
): Promise<Round> {
  const seconds = { warmUpSeconds: 2, seconds: Number(options.seconds) };
  const before = await cpuMicroseconds(pids);
  const result = await sendAtConstantRate(generator, parts, {
    ...{ url: url + path, status, contentBytes, connections, rate },
    ...seconds,
  });
  const cpuUs = (await cpuMicroseconds(pids)) - before;
  return { ...result, busy: cpuUs / 1e6 / (seconds.warmUpSeconds + seconds.seconds) };
}

function roundsText(name: string, rounds: readonly Round[]): string {
  const figure = (what: keyof Round, digits: number): string =>
    spreadText(spreadOf(of(rounds, what)), digits);
  return (
    `  ${name.padEnd(10)}p50 ${figure('p50Ms', 2)}  p99 ${figure('p99Ms', 2)}  ` +
    `p99.9 ${figure('p999Ms', 1)} ms, ${Math.round(100 * spreadOf(of(rounds, 'busy')).median)} % busy; ` +
    `the generator's own p99 of lateness ${figure('lateP99Ms', 2)} ms`
  );
}

function of(rounds: readonly Round[], what: keyof Round): readonly number[] {
  return rounds.map((round) => round[what]);
}
