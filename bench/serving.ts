// Compares Waymark with nginx and Caddy on one machine; see bench/README.md.
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import {
  freshWaymarks,
  supportsTransport,
  prepareServers,
  startAll,
  hasPath,
} from './contestants.ts';
import { ownGenerator, wrk, type LoadGenerator } from './load.ts';
import {
  chooseCores,
  findPrograms,
  surroundings,
  type Cores,
  type Programs,
  type Surroundings,
} from './machine.ts';
import { measureScenario, type Contestant, type Effort } from './measure.ts';
import { residentBytes } from './proc.ts';
import { headingText, scenarioText, spreadText, summarise, type ScenarioReport } from './report.ts';
import { hugeBytes, scenarios, type Scenario } from './scenarios.ts';
import { measureStartUp } from './startup.ts';
import { addHugeFile, createWorkspace } from './workspace.ts';

const connections = 32;
const thorough: Effort = { rounds: 5, seconds: 2, warmUpSeconds: 4, connections };
const quick: Effort = { rounds: 1, seconds: 1, warmUpSeconds: 1, connections };
const starts = 5;
const mebibyte = 1024 * 1024;

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    only: { type: 'string', default: '' },
    beside: { type: 'string' },
  },
});

await run();

async function run(): Promise<void> {
  if (process.platform !== 'linux') throw new Error('The benchmark reads /proc: it needs Linux.');
  const chosen = chooseScenarios(options.only);
  const effort = options.quick ? quick : thorough;
  const programs = findPrograms();
  const cores = await chooseCores();
  const machine = await surroundings(programs);
  printMachine(machine, { programs, cores, effort });

  const workspace = await createWorkspace();
  if (chosen.some(({ contentBytes }) => contentBytes === hugeBytes)) await addHugeFile(workspace);
  const startUp = await measureStartUp(await freshWaymarks(starts, workspace));
  console.log(`Waymark's start, ms from spawn to first answer: ${spreadText(startUp, 0)}`);

  const servers = await prepareServers(workspace, {
    programs,
    cores,
    beside: options.beside && resolve(options.beside),
  });
  const contestants = await startAll(servers, chosen);
  const memoryBefore = await memoryOf(contestants);
  const load = loadGenerator(programs, { core: cores.load, folder: workspace.folder });
  const conditions = { load, effort, core: cores.server };
  const reports: ScenarioReport[] = [];
  console.log(`\n${headingText()}`);
  for (const scenario of chosen) {
    const able = contestants.filter(
      (contestant) => hasPath(contestant, scenario) && supportsTransport(contestant, scenario),
    );
    const rows = await measureScenario(scenario, able, conditions);
    const report = summarise(scenario, rows);
    console.log(scenarioText(report));
    reports.push(report);
  }
  const memory = { afterStart: memoryBefore, afterLoad: await memoryOf(contestants) };
  printMemory(memory);
  for (const server of [...servers.contestants, servers.source]) await server.stop();
  if (options.json !== undefined) {
    const all = { machine, effort, load: load.name, cores, startUp, memory, scenarios: reports };
    await writeFile(options.json, `${JSON.stringify(all, undefined, 2)}\n`);
  }
}

function chooseScenarios(only: string): readonly Scenario[] {
  const chosen = scenarios.filter(({ id }) => only.split(',').some((part) => id.includes(part)));
  if (chosen.length > 0) return chosen;
  throw new Error(`--only: no scenario of ${scenarios.map(({ id }) => id).join(', ')}`);
}

function loadGenerator(
  { wrk: program }: Programs,
  parts: Parameters<typeof ownGenerator>[0],
): LoadGenerator {
  return program === undefined ? ownGenerator(parts) : wrk(program, parts);
}

async function memoryOf(contestants: readonly Contestant[]): Promise<Record<string, number>> {
  const entries = contestants.map(
    async ({ name, server }) => [name, await residentBytes(server.pids)] as const,
  );
  return Object.fromEntries(await Promise.all(entries));
}

function printMachine(
  machine: Surroundings,
  {
    programs,
    cores,
    effort,
  }: { readonly programs: Programs; readonly cores: Cores; readonly effort: Effort },
): void {
  for (const [name, value] of Object.entries(machine)) console.log(`${name.padEnd(7)} ${value}`);
  console.log(
    `load    ${effort.connections} keep-alive connections, ${effort.rounds} × ${effort.seconds} s after a warm-up; ` +
      (cores.server === undefined
        ? 'NOT pinned (no taskset, or one core): servers and load compete'
        : 'servers on one core, load and source on another'),
  );
  const missing = Object.entries(programs).filter(([, program]) => program === undefined);
  if (missing.length > 0) {
    const names = missing.map(([name]) => name).join(', ');
    console.log(
      `\nMISSING ${names}: going on without. On Debian: apt-get install nginx-light caddy h2o wrk`,
    );
    if (programs.wrk === undefined) {
      console.log('The load comes from a generator in Node, which needs more CPU time than wrk.');
    }
  }
  console.log('');
}

function printMemory({
  afterStart,
  afterLoad,
}: {
  readonly afterStart: Readonly<Record<string, number>>;
  readonly afterLoad: Readonly<Record<string, number>>;
}): void {
  const mebibytes = (bytes = 0): string => (bytes / mebibyte).toFixed(0);
  console.log('\nResident memory, MiB: after start, after the load');
  for (const [name, bytes] of Object.entries(afterStart)) {
    console.log(`  ${name.padEnd(12)}${mebibytes(bytes)}  ${mebibytes(afterLoad[name])}`);
  }
}
