// Compares breadcrumbs with a stored page, both of Waymark, in turns; see bench/README.md.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { mmdb } from '../test/modules/visitors/mmdb.ts';
import { ratioOf, spreadOf } from './figures.ts';
import { ownGenerator, wrk } from './load.ts';
import { chooseCores, findPrograms, surroundings } from './machine.ts';
import { measureScenario, type Contestant, type Sample } from './measure.ts';
import { freePorts } from './processes.ts';
import { spreadText } from './report.ts';
import { browserFields, smallBytes, type Scenario } from './scenarios.ts';
import { waymark } from './servers/waymark.ts';
import { createWorkspace, rulesFor } from './workspace.ts';

const { values: options } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } });

/** The fields of a browser, so that every condition finds the field that it reads. */
const headers = { ...browserFields, Cookie: 'session=8f14e45fceea167a; theme=dark' };

/** Twenty conditions, each of another branch, of which the last one holds. */
const when = [
  { user: 'ann' },
  { role: ['editor', 'owner'] },
  { country: ['CH', 'LI'] },
  { country: 'DE' },
  { country: ['FR', 'IT', 'AT'] },
  { lang: 'fr' },
  { lang: ['it', 'rm'] },
  { device: 'mobile' },
  { device: ['ios', 'android'] },
  { device: 'bot' },
  { query: { ref: 'mail' } },
  { query: { campaign: '*' } },
  { ip: '10.0.0.0/8' },
  { ip: ['2001:db8::/32', '192.0.2.0/24', '198.51.100.0/24'] },
  { after: '2099-01-01' },
  { before: '2020-01-01' },
  { percent: 0 },
  { user: '*' },
  { lang: 'en' },
  { device: 'desktop' },
].map((some, at) => ({ if: some, target: `/branch/${at}` }));

const key = (name: string): string => `/svc1/userinterface.link.htm?k=${name}`;
const scenarios: readonly Scenario[] = [
  scenario('a 1 KB stored page', '/page/1k.html', { status: 200, contentBytes: smallBytes }),
  // The server prepares no response for a request with a field that it does not know.
  scenario('the same page, made anew', '/page/1k.html', {
    ...{
      status: 200,
      contentBytes: smallBytes,
      id: 'anew',
      headers: { ...headers, 'X-Anew': '1' },
    },
  }),
  scenario('link.htm without conditions', key('plain')),
  scenario('link.htm with 20 conditions', key('twenty')),
  scenario('a visit to a path with 20 conditions', '/twenty'),
  scenario('link.htm with 20 conditions, as JSON', key('twenty'), {
    status: 200,
    headers: { ...headers, Accept: 'application/json' },
  }),
];

const programs = findPrograms();
const cores = await chooseCores();
for (const [name, value] of Object.entries(await surroundings(programs))) {
  console.log(`${name.padEnd(7)} ${value}`);
}
const workspace = await createWorkspace();
const folder = await workspace.folderFor('waymark');
await writeFile(join(folder, 'geo.mmdb'), mmdb({ '127.0.0.0/8': { country: { iso_code: 'SE' } } }));
const [port = 0] = await freePorts(1);
const resolve = { kind: 'resolve', origin: '*' };
const server = waymark(
  { folder, port, core: cores.server },
  {
    root: workspace.diskRoot,
    ini: '[geo]\ndatabase = geo.mmdb\n',
    rules: [
      ...rulesFor('http://127.0.0.1:9'),
      { ...resolve, path: 'plain', enginedata: { target: '/all' } },
      { ...resolve, path: 'twenty', enginedata: { target: '/all', when } },
      { ...resolve, path: '/twenty', enginedata: { target: '/all', when } },
    ],
  },
);
const contestant: Contestant = { name: 'Waymark', server: await server.start() };
const samples = await measureAll();
await server.stop();
report();

function scenario(
  title: string,
  path: string,
  more: Partial<Pick<Scenario, 'id' | 'status' | 'contentBytes' | 'headers'>> = {},
): Scenario {
  return {
    ...{ id: path, title, path, status: 302, contentBytes: undefined, conditional: false, headers },
    ...more,
  };
}

/**
 * Measures one round of each scenario in turns, so that a slow moment of the machine affects all.
 */
async function measureAll(): Promise<ReadonlyMap<Scenario, readonly Sample[]>> {
  const parts = { core: cores.load, folder: workspace.folder };
  const load = programs.wrk === undefined ? ownGenerator(parts) : wrk(programs.wrk, parts);
  const all = new Map<Scenario, Sample[]>(scenarios.map((one) => [one, []]));
  for (let round = 0; round <= Number(options.rounds); round += 1) {
    for (const [one, taken] of all) {
      const effort = { rounds: 1, seconds: 2, warmUpSeconds: 1, connections: 32 };
      const [row] = await measureScenario(one, [contestant], { load, effort, core: cores.server });
      // V8 compiles the code during the first round.
      if (round > 0) taken.push(...(row?.samples ?? []));
    }
  }
  return all;
}

function report(): void {
  const cpuOf = (one: Scenario | undefined): readonly number[] =>
    (one === undefined ? [] : (samples.get(one) ?? [])).map(
      ({ cpuUsPerRequest }) => cpuUsPerRequest,
    );
  const [prepared, anew] = [cpuOf(scenarios[0]), cpuOf(scenarios[1])];
  const heading = `${'CPU µs/request'.padStart(24)}${'/ prepared page'.padStart(22)}`;
  console.log(`\n${''.padEnd(38)}${heading}${'/ page made anew'.padStart(22)}`);
  for (const one of scenarios) {
    const cpu = spreadText(spreadOf(cpuOf(one)), 1).padStart(24);
    const ratios = [prepared, anew].map((page) =>
      spreadText(ratioOf(cpuOf(one), page), 2).padStart(22),
    );
    console.log(`${one.title.padEnd(38)}${cpu}${ratios.join('')}`);
  }
}
