// What a second worker brings; see README.md beside this file.
import { parseArgs } from 'node:util';
import { ratioOf, spreadOf } from './figures.ts';
import { ownGenerator, wrk } from './load.ts';
import { chooseCores, findPrograms, surroundings, type Cores } from './machine.ts';
import { measureScenario, type Contestant, type Row } from './measure.ts';
import { freePorts } from './processes.ts';
import { spreadText } from './report.ts';
import { pageMadeAnew, scenarios } from './scenarios.ts';
import type { BenchServer } from './servers/server.ts';
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
const asked = [...scenarios.filter(({ id }) => id === 'file-1k'), pageMadeAnew];

/**
 * What is compared: what came through, beside a load generator on the same cores; what a request
 * costs; and how many would come through if each process had a core of its own, which is what the
 * busiest one can do: it holds as far as the workers share the connections evenly.
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
  const servers = [await prepare(2, cores), await prepare(1, cores)];
  const contestants: Contestant[] = [];
  for (const server of servers) {
    contestants.push({ name: server.name, server: await server.start() });
  }
  console.log(`\n${how}`);
  for (const scenario of asked.filter(({ id }) => id.includes(options.only))) {
    const rows = await measureScenario(scenario, contestants, { load, effort, core: cores.server });
    console.log(
      `\n${[scenario.title, ...rows.map(({ name }) => name), 'ratio'].map(cell).join('')}`,
    );
    for (const [what, figure] of Object.entries(figures)) {
      const [two = [], one = []] = rows.map(figure);
      const cells = [spreadText(spreadOf(two), 1), spreadText(spreadOf(one), 1)];
      console.log([`  ${what}`, ...cells, spreadText(ratioOf(two, one), 2)].map(cell).join(''));
    }
  }
  for (const server of servers) await server.stop();
}

async function prepare(workers: number, cores: Cores): Promise<BenchServer> {
  const folder = await workspace.folderFor(`${workers}-${cores.server ?? 'any'}`);
  const [port = 0] = await freePorts(1);
  const server = waymark(
    { folder, port, core: cores.server },
    { root: workspace.diskRoot, rules: rulesFor('http://127.0.0.1:9'), workers },
  );
  return { ...server, name: workers === 1 ? '1 worker' : `${workers} workers` };
}

function cell(text: string, at: number): string {
  return at === 0 ? text.padEnd(30) : text.padStart(30);
}
