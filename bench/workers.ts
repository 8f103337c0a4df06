// Compares two workers with one; see bench/README.md.
import { parseArgs } from 'node:util';
import { ratioOf, spreadOf } from './figures.ts';
import { ownGenerator, wrk } from './load.ts';
import { chooseCores, findPrograms, surroundings, type Cores } from './machine.ts';
import { measureScenario, type Contestant, type Row } from './measure.ts';
import { freePorts } from './processes.ts';
import { spreadText } from './report.ts';
import { pageMadeAnew, scenarios, type Scenario } from './scenarios.ts';
import { nginx } from './servers/nginx.ts';
import type { BenchServer, Place } from './servers/server.ts';
import { waymark } from './servers/waymark.ts';
import { createWorkspace, rulesFor } from './workspace.ts';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
  },
});
const effort = {
  rounds: Number(options.rounds),
  ...{ seconds: 3, warmUpSeconds: 2, connections: 64 },
};
/** No scenario fetches, so nothing needs to listen here. */
const noSource = 'http://127.0.0.1:9';
const chosen = [...scenarios.filter(({ id }) => id === 'file-1k'), pageMadeAnew];

/**
 * The compared figures: requests, with the load generator on the same cores; the CPU time of a
 * request; and the requests that a core for each process would allow, by the CPU time of the
 * busiest one. The last holds if the workers share connections evenly.
 */
const figures: Readonly<Record<string, (row: Row) => readonly number[]>> = {
  'requests/s': ({ samples }) => samples.map(({ requestsPerSecond }) => requestsPerSecond),
  'CPU µs/request': ({ samples }) => samples.map(({ cpuUsPerRequest }) => cpuUsPerRequest),
  'requests/s of the busiest': ({ samples }) =>
    samples.map(({ busiestUsPerRequest }) => 1e6 / busiestUsPerRequest),
};

const programs = findPrograms();
for (const [name, value] of Object.entries(await surroundings(programs))) {
  console.log(`${name.padEnd(7)} ${value}`);
}
const workspace = await createWorkspace();
await measure('Workers and load on all cores, as the kernel has it', {
  server: undefined,
  load: undefined,
});
await measure('Workers on one core, the load on another', await chooseCores());

async function measure(how: string, cores: Cores): Promise<void> {
  const parts = { core: cores.load, folder: workspace.folder };
  const load = programs.wrk === undefined ? ownGenerator(parts) : wrk(programs.wrk, parts);
  const servers: BenchServer[] = [];
  for (const prepare of [prepareWaymark, ...(programs.nginx === undefined ? [] : [prepareNginx])]) {
    for (const workers of [2, 1]) {
      const folder = await workspace.folderFor(`${servers.length}-${cores.server ?? 'any'}`);
      const [port = 0] = await freePorts(1);
      const server = prepare({ folder, port, core: cores.server, source: noSource }, workers);
      servers.push({ ...server, name: `${server.name}, ${workers}` });
    }
  }
  const contestants: Contestant[] = [];
  for (const server of servers) {
    contestants.push({ name: server.name, server: await server.start() });
  }
  console.log(`\n${how}`);
  for (const scenario of chosen.filter(({ id }) => id.includes(options.only))) {
    const able = scenario === pageMadeAnew ? contestants.slice(0, 2) : contestants;
    const rows = await measureScenario(scenario, able, { load, effort, core: cores.server });
    for (let at = 0; at < rows.length; at += 2) print(scenario, rows.slice(at, at + 2));
  }
  for (const server of servers) await server.stop();
}

/** The figures of two workers compared with one. */
function print(scenario: Scenario, rows: readonly Row[]): void {
  console.log(`\n${[scenario.title, ...rows.map(({ name }) => name), 'ratio'].map(cell).join('')}`);
  for (const [what, figure] of Object.entries(figures)) {
    const [two = [], one = []] = rows.map(figure);
    const cells = [spreadText(spreadOf(two), 1), spreadText(spreadOf(one), 1)];
    console.log([`  ${what}`, ...cells, spreadText(ratioOf(two, one), 2)].map(cell).join(''));
  }
}

function prepareWaymark(place: Place, workers: number): BenchServer {
  return waymark(place, { root: workspace.diskRoot, rules: rulesFor(noSource), workers });
}

function prepareNginx(place: Place, workers: number): BenchServer {
  return nginx(programs.nginx ?? '', place, { root: workspace.diskRoot, workers });
}

function cell(text: string, at: number): string {
  return at === 0 ? text.padEnd(30) : text.padStart(30);
}
