// What sections of the ini file cost each request: five [headers], two [rewrite] and a [proxy]; an
// [access], a [rate] and three fields; a password; a session. See bench/README.md.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { basic, scryptLine } from '../test/modules/access/passwords.ts';
import { loginIni, startProvider } from '../test/modules/login/provider.ts';
import { TestVisitor } from '../test/modules/login/visitor.ts';
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
    with: { type: 'string', default: '' },
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

/** One access rule, one rate and three fields of answers, which all let the load pass. */
const accessIni = `[access.near]
allow = 127.0.0.0/8
[rate.all]
rate = 1000000/s
[headers.security]
X-Frame-Options = DENY
[headers.host]
X-Served-For = \${host}
[headers.pages]
path = *.html
Referrer-Policy = same-origin
`;

/** A server with further sections, against one without them. */
interface Comparison {
  /** Its word for `--with`. */
  readonly id: string;
  readonly title: string;
  readonly ini: string;
  /** The fields of each request to both servers. */
  readonly headers: (url: string) => Promise<Readonly<Record<string, string>>>;
  /** Whether the proxy of its sections has the pages of the rule that fetches. */
  readonly hasProxy: boolean;
  readonly ids: readonly string[];
}

const noHeaders = (): Promise<Readonly<Record<string, string>>> => Promise.resolve({});

const programs = findPrograms();
const cores = await chooseCores();
for (const [name, value] of Object.entries(await surroundings(programs))) {
  console.log(`${name.padEnd(7)} ${value}`);
}
const workspace = await createWorkspace();
const [sourcePort = 0] = await freePorts(1);
const address = `http://127.0.0.1:${sourcePort}`;
const source = await prepareSource(workspace, { programs, cores, port: sourcePort });
await source.start();
const passwordFile = join(workspace.folder, 'users.txt');
await writeFile(passwordFile, scryptLine('ann', 'secret'));
const ending: (() => unknown)[] = [];
const provider = await startProvider({ after: (end) => ending.push(end) });

/** The cookie of a person who has signed in. */
async function sessionCookie(url: string): Promise<Readonly<Record<string, string>>> {
  const visitor = new TestVisitor();
  await visitor.follow(`${url}/svc1/login/sign-in?return_to=/file/1k.html`);
  const [cookie] = [...visitor.cookies].filter(([name]) => name === 'waymark_login');
  if (cookie === undefined) throw new Error('nobody has signed in');
  return { Cookie: cookie.join('=') };
}

const all = ['file-1k', 'page-1k', 'not-found', 'fetch-1k', 'hit-1k', 'not-modified'];
const comparisons: readonly Comparison[] = [
  {
    ...{ id: 'sections', title: 'five [headers], two [rewrite] and a [proxy]' },
    ...{ ini: sections(address), headers: noHeaders, hasProxy: true, ids: all },
  },
  {
    ...{ id: 'access', title: 'one [access], one [rate] and three fields of [headers]' },
    ...{ ini: accessIni, headers: noHeaders, hasProxy: false, ids: all },
  },
  {
    ...{ id: 'password', title: 'a password, checked for each request' },
    ini: `[access.ann]\npassword_file = ${passwordFile}\n`,
    headers: () => Promise.resolve({ Authorization: basic('ann', 'secret') }),
    ...{ hasProxy: false, ids: ['file-1k', 'page-1k', 'fetch-1k', 'not-modified'] },
  },
  {
    ...{ id: 'session', title: 'a session of [login], checked for each request' },
    ini: `[access.ann]\nusers = ann\n${loginIni(provider)}`,
    ...{ headers: sessionCookie, hasProxy: false },
    ids: ['file-1k', 'page-1k', 'fetch-1k', 'not-modified'],
  },
];

const parts = { core: cores.load, folder: workspace.folder };
const load = programs.wrk === undefined ? ownGenerator(parts) : wrk(programs.wrk, parts);

/** Measures both servers in turns. */
async function compare({ id, title, ini, headers, hasProxy, ids }: Comparison): Promise<void> {
  console.log(`\n## ${title}`);
  const [port, plainPort] = await freePorts(2);
  const rules = rulesFor(address);
  const place = async (name: string, at = 0) => ({
    ...{ folder: await workspace.folderFor(`${id}-${name}`), port: at, core: cores.server },
  });
  const root = workspace.diskRoot;
  const configured = waymark(await place('configured', port), {
    ...{ root, ini },
    rules: hasProxy ? rules.filter(({ path }) => path !== '/fetched/*') : rules,
  });
  const plain = waymark(await place('plain', plainPort), { root, rules });
  const contestants: readonly Contestant[] = [
    { name: 'with the sections', server: await configured.start() },
    { name: 'without them', server: await plain.start() },
  ];
  const sent = await headers(`http://127.0.0.1:${port ?? 0}`);
  const chosen = [...scenarios.filter((one) => ids.includes(one.id)), pageMadeAnew];
  for (const scenario of chosen.filter((one) => one.id.includes(options.only))) {
    const asked = { ...scenario, headers: { ...scenario.headers, ...sent } };
    const rows = await measureScenario(asked, contestants, { load, effort, core: cores.server });
    console.log(`\n${pairText(scenario, rows)}`);
  }
  for (const one of [configured, plain]) await one.stop();
}

for (const one of comparisons.filter(({ id }) => id.includes(options.with))) await compare(one);
await source.stop();
for (const end of ending) await end();
