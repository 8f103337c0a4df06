// The effect of a million page rules on other responses of the site; see bench/README.md.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ownGenerator, wrk } from './load.ts';
import { chooseCores, findPrograms, surroundings } from './machine.ts';
import { measureScenario, type Contestant } from './measure.ts';
import { freePorts } from './processes.ts';
import { pairText } from './report.ts';
import { fillFolder } from './rules/fill.ts';
import { pageMadeAnew, scenarios } from './scenarios.ts';
import { waymark } from './servers/waymark.ts';
import { createWorkspace, rulesFor } from './workspace.ts';

const { values: options } = parseArgs({
  options: {
    rules: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
  },
});
const rules = Number(options.rules);
const effort = {
  rounds: Number(options.rounds),
  ...{ seconds: 2, warmUpSeconds: 2, connections: 32 },
};

const programs = findPrograms();
const cores = await chooseCores();
for (const [name, value] of Object.entries(await surroundings(programs))) {
  console.log(`${name.padEnd(7)} ${value}`);
}
const workspace = await createWorkspace();
const ports = await freePorts(2);
const few = server('few', ports[0]);
const many = server('many', ports[1]);
const filling = performance.now();
await fillFolder(join(await workspace.folderFor('many'), 'data'), rules);
console.log(`\n${rules} rules filled in ${((performance.now() - filling) / 1000).toFixed(0)} s`);
const contestants: readonly Contestant[] = [
  { name: `with ${rules} rules`, server: await (await many).start() },
  { name: 'with three rules', server: await (await few).start() },
];
const parts = { core: cores.load, folder: workspace.folder };
const load = programs.wrk === undefined ? ownGenerator(parts) : wrk(programs.wrk, parts);
const chosen = [
  ...scenarios.filter(({ id }) => ['file-1k', 'page-1k', 'not-modified'].includes(id)),
  // A cached response looks up no rule; these two requests match the rules each time.
  pageMadeAnew,
  ...scenarios.filter(({ id }) => id === 'not-found'),
];
for (const scenario of chosen.filter(({ id }) => id.includes(options.only))) {
  const rows = await measureScenario(scenario, contestants, { load, effort, core: cores.server });
  console.log(`\n${pairText(scenario, rows)}`);
}
for (const one of [few, many]) await (await one).stop();

async function server(name: string, port = 0) {
  const place = { folder: await workspace.folderFor(name), port, core: cores.server };
  return waymark(place, { root: workspace.diskRoot, rules: rulesFor('http://127.0.0.1:9') });
}
