import { families } from '../src/families.ts';
// The effect of open drafts and schedules on the responses of the live site, and the time of a large
// publication; see bench/README.md.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { uuidv7 } from 'uuidv7';
import { runPublish } from '../src/modules/drafts/operations/publish.ts';
import { runUndo } from '../src/modules/drafts/operations/undo.ts';
import { draftStore } from '../src/modules/drafts/log/draft-store.ts';
import { openStore } from '../src/core/log/open.ts';
import type { LoggedDraft, Store } from '../src/core/log/store.ts';
import { ownGenerator, wrk } from './load.ts';
import { chooseCores, findPrograms, surroundings } from './machine.ts';
import { measureScenario, type Contestant } from './measure.ts';
import { residentBytes } from './proc.ts';
import { freePorts } from './processes.ts';
import { pairText } from './report.ts';
import { pageMadeAnew, scenarios } from './scenarios.ts';
import { waymark } from './servers/waymark.ts';
import { createWorkspace, rulesFor } from './workspace.ts';
import { storedDrafts } from '../src/modules/drafts/log/family.ts';

const { values: options } = parseArgs({
  options: {
    drafts: { type: 'string', default: '100' },
    changes: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
  },
});
const effort = {
  rounds: Number(options.rounds),
  ...{ seconds: 2, warmUpSeconds: 2, connections: 32 },
};
const livePages = 2_000;
const changesEach = 20;

const programs = findPrograms();
const cores = await chooseCores();
for (const [name, value] of Object.entries(await surroundings(programs))) {
  console.log(`${name.padEnd(7)} ${value}`);
}
const workspace = await createWorkspace();
await fill(join(await workspace.folderFor('none'), 'data'), 0);
await fill(join(await workspace.folderFor('drafts'), 'data'), Number(options.drafts));
await publishOnce(join(await workspace.folderFor('large'), 'data'), Number(options.changes));

const ports = await freePorts(2);
const [drafts, none] = [await server('drafts', ports[0]), await server('none', ports[1])];
const contestants: readonly Contestant[] = [
  { name: `${options.drafts} drafts`, server: await drafts.start() },
  { name: 'without drafts', server: await none.start() },
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
console.log('\nMiB resident after it');
for (const { name, server: running } of contestants) {
  const bytes = await residentBytes(running.pids);
  console.log(`  ${name.padEnd(20)}${(bytes / 2 ** 20).toFixed(0)}`);
}
for (const one of [drafts, none]) await one.stop();

async function server(name: string, port = 0) {
  const place = { folder: await workspace.folderFor(name), port, core: cores.server };
  return waymark(place, { root: workspace.diskRoot, rules: rulesFor('http://127.0.0.1:9') });
}

/** Fills a folder with pages, and with drafts that wait for a time, each of which changes some. */
async function fill(folder: string, count: number): Promise<void> {
  const store = await open(folder);
  const ids = await insertPages(store, livePages);
  for (let at = 0; at < count; at += 1) {
    const own = Array.from({ length: changesEach }, (_, each) => {
      return ids[(at * changesEach + each) % livePages] ?? '';
    });
    await addDraft(store, `draft ${at}`, own.map(edited));
    const schedule = { at: `29${10 + (at % 90)}-01-01T00:00:00.000Z`, digest: 'x' };
    const id = store.of(storedDrafts).draftNamed(`draft ${at}`)?.id ?? '';
    await commit(store, [{ family: 'draft', id, action: 'edit', data: { schedule } }]);
  }
  await store.close();
}

/** Prints how long a publication takes, and its undo. */
async function publishOnce(folder: string, changes: number): Promise<void> {
  const store = await open(folder);
  const ids = await insertPages(store, changes);
  await addDraft(store, 'large', ids.map(edited));
  const draft = store.of(storedDrafts).draftNamed('large')?.id ?? '';
  const given = {
    ...{
      draft,
      by: 'bench',
      reader: { keyId: undefined, scopes: new Set(['admin'] as const) },
      request: undefined,
    },
    ...{ resolve: {}, others: undefined, needsApproval: false },
  };
  const runs = { store, newId: uuidv7, now: Date.now };
  const seconds: string[] = [];
  const timed = async (run: () => Promise<{ readonly report: { readonly digest?: unknown } }>) => {
    const begun = performance.now();
    const { report } = await run();
    seconds.push(`${((performance.now() - begun) / 1_000).toFixed(1)} s`);
    return String(report.digest);
  };
  const confirm = await timed(() => runPublish(runs, { ...given, confirm: undefined }));
  await timed(() => runPublish(runs, { ...given, confirm }));
  const undo = await timed(() => runUndo(runs, { ...given, confirm: undefined }));
  await timed(() => runUndo(runs, { ...given, confirm: undo }));
  console.log(`\n${changes} changes: report, publication, report of the undo, undo`);
  console.log(`  ${seconds.join(', ')}`);
  await store.close();
}

async function open(folder: string): Promise<Store> {
  await mkdir(folder, { recursive: true });
  return openStore({ families, folder, now: Date.now, newId: uuidv7 });
}

async function insertPages(store: Store, count: number): Promise<readonly string[]> {
  const pages = Array.from({ length: count }, (_, at): LoggedDraft => {
    const data = {
      origin: '*',
      path: `/of/drafts/${at}`,
      kind: 'content',
      content: `<h1>Page ${at}</h1>`,
    };
    return { family: 'userinterface', id: uuidv7(), action: 'insert', data };
  });
  await commit(store, pages);
  return pages.map(({ id }) => id);
}

function edited(id: string): LoggedDraft {
  return { family: 'userinterface', id, action: 'edit', data: { content: '<h1>Drafted</h1>' } };
}

async function addDraft(
  store: Store,
  name: string,
  changes: readonly LoggedDraft[],
): Promise<void> {
  await commit(store, [{ family: 'draft', id: uuidv7(), action: 'insert', data: { name } }]);
  const draft = store.of(storedDrafts).draftNamed(name);
  if (draft === undefined) throw new Error(`no draft ${name}`);
  await commit(draftStore(store, draft), changes);
}

async function commit(store: Store, drafts: readonly LoggedDraft[]): Promise<void> {
  await store.commit('bench', () => ({ drafts, answer: () => undefined }));
}
