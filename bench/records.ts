// The cost of a table of a million rows, compared with a stored page and with SQLite on the same
// disk; see bench/README.md.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ownGenerator, reportOf, wrk } from './load.ts';
import { chooseCores, findPrograms, surroundings } from './machine.ts';
import { measureScenario, type Contestant } from './measure.ts';
import { freePorts } from './processes.ts';
import { cpuMicroseconds, ownBytes, residentBytes } from './proc.ts';
import { products, rowAt, skuOf, type FillTimes } from './records/rows.ts';
import { measureLists, measureRowInserts } from './records/service.ts';
import { measureSqliteInserts, measureSqliteReads } from './records/sqlite.ts';
import { pairText } from './report.ts';
import type { Percentiles } from './rules/matching.ts';
import { openService, type Service } from './rules/service.ts';
import { scenarioAt } from './scenarios.ts';
import type { RunningServer } from './servers/server.ts';
import { firstKey, waymark } from './servers/waymark.ts';
import { createWorkspace } from './workspace.ts';

const { values: options } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  },
});
const rows = Number(options.rows);
const effort = options.quick
  ? { rounds: 1, seconds: 1, warmUpSeconds: 1, connections: 32 }
  : { rounds: 5, seconds: 2, warmUpSeconds: 2, connections: 32 };
const mebibyte = 1024 * 1024;
/** Inserts that are measured together. */
const insertsAtOnce = options.quick ? 5_000 : 30_000;
const fillProgram = fileURLToPath(new URL('./records/fill-process.ts', import.meta.url));
const program = fileURLToPath(new URL('../bin/waymark.js', import.meta.url));

const programs = findPrograms();
const cores = await chooseCores();
for (const [name, value] of Object.entries(await surroundings(programs))) {
  console.log(`${name.padEnd(7)} ${value}`);
}
const workspace = await createWorkspace();
if ('serve'.includes(options.only)) await measureServing();
if ('import'.includes(options.only)) await measureImport();
if ('sqlite'.includes(options.only)) await measurePeer();

async function measureServing(): Promise<void> {
  const folder = await workspace.folderFor('records');
  const fill = [fillProgram, join(folder, 'data'), String(rows)];
  const parts = { core: undefined, folder };
  const { seconds } = await reportOf<FillTimes>(parts, process.execPath, fill);
  console.log(`\n${rows} rows, two indexes besides the key: filled by ${rate(rows / seconds)}`);

  const [port = 0] = await freePorts(1);
  const place = { folder, port, core: cores.server };
  const server = waymark(place, { root: workspace.diskRoot, rules: [] });
  const started = performance.now();
  const running = await server.start();
  const readyMs = performance.now() - started;
  const mib = async (measure: typeof ownBytes) =>
    ((await measure(running.pids)) / mebibyte).toFixed();
  console.log(
    `ready in ${(readyMs / 1000).toFixed(2)} s, ${await mib(residentBytes)} MiB resident, ` +
      `${await mib(ownBytes)} MiB of them its own`,
  );
  const service = await openService(running.url, await firstKey(join(folder, 'stderr.log')));
  await measureReads(running, service);
  await measurePage(running, service);
  const where = (at: number) => ({ where: { shop: rowAt(at).shop } });
  const above = (at: number) => ({
    where: { price: { '>=': rowAt(at).price * 0.9 } },
    sort: 'price',
  });
  const lists = options.quick ? 500 : 3_000;
  const byShop = await measureLists(service, { rows, lists, input: where });
  const byPrice = await measureLists(service, { rows, lists, input: above });
  console.log(
    `list of 50 by an index: equal ${times(byShop)}, a range in its order ${times(byPrice)}`,
  );
  // V8 compiles during the first ones.
  for (const first of [rows, rows + insertsAtOnce]) {
    const before = await cpuMicroseconds(running.pids);
    const order = { first, inserts: insertsAtOnce, inFlight: 256 };
    const inserts = await measureRowInserts(service, order);
    const cpuUs = ((await cpuMicroseconds(running.pids)) - before) / insertsAtOnce;
    console.log(
      `durable inserts over one websocket, 256 in flight: ${rate(inserts)}, ` +
        `${cpuUs.toFixed(0)} µs of CPU each`,
    );
  }
  console.log(
    `after all that ${await mib(residentBytes)} MiB resident, ${await mib(ownBytes)} its own`,
  );
  service.close();
  await server.stop();
}

/** Reads a row by its key, beside a stored page with the same bytes. */
async function measureReads(running: RunningServer, service: Service): Promise<void> {
  const path = `/svc1/record/get?_v.table=${products.name}&_v.sku=${skuOf(Math.floor(rows / 2))}`;
  const answer = await (await fetch(running.url + path)).text();
  if (!answer.includes('Lamp')) throw new Error(`no row: ${answer}`);
  await service.call('svc1.userinterface.insert', {
    ...{ path: '/stored.json', kind: 'content', contenttype: 'application/json', content: answer },
  });
  const title = `a row by its key, ${answer.length} bytes`;
  await comparePages(running, title, { 'record.get': path, 'stored page': '/stored.json' });
}

/** A page of 50 rows that the server renders, beside a stored page with the same bytes. */
async function measurePage(running: RunningServer, service: Service): Promise<void> {
  const template =
    '<h1>Lamps</h1><ul>{% for lamp in rows.lamps %}<li>{{ lamp.title }}: {{ lamp.price }}</li>' +
    '{% endfor %}</ul>';
  const lamps = { table: products.name, sort: 'price', limit: 50 };
  await service.call('svc1.userinterface.insert', {
    ...{ path: '/lamps', kind: 'content', engine: 'template' },
    enginedata: { render: 'server', rows: { lamps }, title: 'Lamps', template },
  });
  const content = await (await fetch(`${running.url}/lamps`)).text();
  if (content.split('<li>').length !== 51) throw new Error(`no page of 50 rows: ${content}`);
  await service.call('svc1.userinterface.insert', { path: '/stored', kind: 'content', content });
  const title = `a page of 50 rows, ${content.length} bytes`;
  await comparePages(running, title, { 'rendered page': '/lamps', 'stored page': '/stored' });
}

async function comparePages(
  running: RunningServer,
  title: string,
  paths: Readonly<Record<string, string>>,
): Promise<void> {
  const contestants: readonly Contestant[] = Object.entries(paths).map(([name, path]) => ({
    name,
    server: { ...running, url: running.url + path },
  }));
  const parts = { core: cores.load, folder: workspace.folder };
  const load = programs.wrk === undefined ? ownGenerator(parts) : wrk(programs.wrk, parts);
  const scenario = scenarioAt('', { title, status: 200 });
  const measured = await measureScenario(scenario, contestants, {
    load,
    effort,
    core: cores.server,
  });
  console.log(`\n${pairText(scenario, measured)}\n`);
}

/** `waymark import` of a table and its rows into an empty folder. */
async function measureImport(): Promise<void> {
  const folder = await workspace.folderFor('records-import');
  const config = join(folder, 'server.ini');
  await writeFile(config, '[server]\nlisten = 127.0.0.1:0\ndata = data\n');
  const file = join(folder, 'rows.ndjson');
  await pipeline(Readable.from(importLines()), createWriteStream(file));
  const started = performance.now();
  const child = spawn(process.execPath, [program, 'import', file, '--config', config], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout.on('data', (text: Buffer) => process.stdout.write(text));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`import ended with ${String(code)}`);
  const seconds = (performance.now() - started) / 1000;
  console.log(`waymark import: ${rate(rows / seconds)}`);
}

function* importLines(): Iterable<string> {
  yield `${JSON.stringify({ a: 'svc1.table.insert', v: products })}\n`;
  for (let at = 0; at < rows; at += 1) {
    yield `${JSON.stringify({ a: 'svc1.record.insert', v: { table: products.name, ...rowAt(at) } })}\n`;
  }
}

async function measurePeer(): Promise<void> {
  const grouped = measureSqliteInserts(await workspace.folderFor('sqlite'), 30_000, 256);
  const folder = await workspace.folderFor('sqlite-bulk');
  const bulk = measureSqliteInserts(folder, rows, 20_000);
  const { byKeyUs, listMs } = measureSqliteReads(folder, rows);
  console.log(
    `\nSQLite (WAL, synchronous=FULL) in its own process, with the same indexes: ` +
      `${rate(grouped)} 256 to a transaction, ${rate(bulk)} 20,000 to one;\n` +
      `a row by its key ${byKeyUs.median.toFixed(1)} / ${byKeyUs.p99.toFixed(1)} µs, ` +
      `50 rows by an index ${times(listMs)}`,
  );
}

function times({ median, p99 }: Percentiles): string {
  return `${median.toFixed(2)} / ${p99.toFixed(2)} ms`;
}

function rate(perSecond: number): string {
  return `${perSecond.toFixed(0)} rows/s`;
}
