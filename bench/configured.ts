// What five [headers], two [rewrite] and a [proxy] of the ini file cost each request; see
// bench/README.md.
import { parseArgs } from 'node:util';
import { prepareSource } from './contestants.ts';
import { ownGenerator, wrk } from './load.ts';
import { chooseCores, findPrograms, surroundings } from './machine.ts';
import { measureScenario, type Contestant } from './measure.ts';
import { freePorts } from './processes.ts';
import { pairText } from './report.ts';
import { pageMadeAnew, scenarios } from './scenarios.ts';
import { waymark } from './servers/waymark.ts';
import { createWorkspace, rulesFor } from './workspace.ts';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    only: { type: 'string', default: '' },
  },
});
const effort = {
  rounds: Number(options.rounds),
  ...{ seconds: 2, warmUpSeconds: 3, connections: 32 },
};

/** Sections as sites have them; all but the assets apply to the requests that are measured. */
const sections = (source: string): string => `[headers.security]
X-Frame-Options = DENY
[headers.transport]
Strict-Transport-Security = max-age=31536000
[headers.pages]
path = *.html, */
Referrer-Policy = same-origin
[headers.host]
X-Served-For = \${host}
[headers.assets]
path = /assets/*
Cache-Control = public, max-age=31536000, immutable
[rewrite.posts]
match = ^/blog/(\\d+)/(.*)$
to = /posts/$1-$2
[rewrite.old]
match = ^/old/(.*)$
to = /$1
[proxy.fetched]
path = /fetched/
source = ${source}
`;

const programs = findPrograms();
const cores = await chooseCores();
for (const [name, value] of Object.entries(await surroundings(programs))) {
  console.log(`${name.padEnd(7)} ${value}`);
}
const workspace = await createWorkspace();
const [sourcePort = 0, ...ports] = await freePorts(3);
const address = `http://127.0.0.1:${sourcePort}`;
const source = await prepareSource(workspace, { programs, cores, port: sourcePort });
await source.start();
const rules = rulesFor(address);
const place = async (name: string, port = 0) => ({
  ...{ folder: await workspace.folderFor(name), port, core: cores.server },
});
const root = workspace.diskRoot;
const configured = waymark(await place('configured', ports[0]), {
  root,
  ini: sections(address),
  // The proxy has the pages of this rule.
  rules: rules.filter(({ path }) => path !== '/fetched/*'),
});
const plain = waymark(await place('plain', ports[1]), { root, rules });
const contestants: readonly Contestant[] = [
  { name: 'with the sections', server: await configured.start() },
  { name: 'without them', server: await plain.start() },
];
const parts = { core: cores.load, folder: workspace.folder };
const load = programs.wrk === undefined ? ownGenerator(parts) : wrk(programs.wrk, parts);
const ids = ['file-1k', 'page-1k', 'not-found', 'fetch-1k', 'hit-1k', 'not-modified'];
const chosen = [...scenarios.filter(({ id }) => ids.includes(id)), pageMadeAnew];
for (const scenario of chosen.filter(({ id }) => id.includes(options.only))) {
  const rows = await measureScenario(scenario, contestants, { load, effort, core: cores.server });
  console.log(`\n${pairText(scenario, rows)}`);
}
for (const one of [configured, plain, source]) await one.stop();
