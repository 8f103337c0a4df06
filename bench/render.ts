// Compares get_render of one rule with the same bytes as a stored page; see bench/README.md.
import { parseArgs } from 'node:util';
import { ownGenerator, wrk } from './load.ts';
import { chooseCores, findPrograms, surroundings } from './machine.ts';
import { measureScenario, type Contestant } from './measure.ts';
import { freePorts } from './processes.ts';
import { pairText } from './report.ts';
import { scenarioAt, smallBytes } from './scenarios.ts';
import { waymark, type RuleFields } from './servers/waymark.ts';
import { createWorkspace } from './workspace.ts';

const { values: options } = parseArgs({
  options: { quick: { type: 'boolean', default: false } },
});
const effort = options.quick
  ? { rounds: 1, seconds: 1, warmUpSeconds: 1, connections: 32 }
  : { rounds: 5, seconds: 2, warmUpSeconds: 1, connections: 32 };
const path = '/lamps/tern';

const programs = findPrograms();
const cores = await chooseCores();
for (const [name, value] of Object.entries(await surroundings(programs))) {
  console.log(`${name.padEnd(7)} ${value}`);
}
const workspace = await createWorkspace();
const [port = 0] = await freePorts(1);
const place = { folder: await workspace.folderFor('waymark'), port, core: cores.server };
const generic: RuleFields = {
  path: '/lamps/*',
  kind: 'content',
  engine: 'html',
  enginedata: { html: '<p>x</p>'.repeat(Math.floor((smallBytes - 380) / 8)), title: 'Tern' },
};
// The stored page has the bytes of this response, so a first server must send it.
const question = `/svc1/userinterface/get_render?_v.origin=http://127.0.0.1:${port}&_v.path=${path}`;
const first = waymark(place, { root: workspace.diskRoot, rules: [generic] });
const { url } = await first.start();
const answer = await (await fetch(url + question)).text();
await first.stop();

const stored: RuleFields = {
  path: '/stored.json',
  kind: 'content',
  contenttype: 'application/json',
  content: answer,
};
const again = { ...place, folder: await workspace.folderFor('again') };
const server = waymark(again, { root: workspace.diskRoot, rules: [generic, stored] });
const running = await server.start();
const contestants: readonly Contestant[] = [
  { name: 'get_render', server: { ...running, url: running.url + question } },
  { name: 'stored page', server: { ...running, url: `${running.url}/stored.json` } },
];
const parts = { core: cores.load, folder: workspace.folder };
const load = programs.wrk === undefined ? ownGenerator(parts) : wrk(programs.wrk, parts);
const scenarios = [
  scenarioAt('', { title: `${answer.length} bytes`, status: 200 }),
  scenarioAt('', { title: '304 for them', status: 304, conditional: true }),
];
for (const scenario of scenarios) {
  const rows = await measureScenario(scenario, contestants, { load, effort, core: cores.server });
  console.log(`\n${pairText(scenario, rows)}`);
}
await server.stop();
