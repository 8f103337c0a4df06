// The long fault run: kills a server at random points of mixed writes, again and again on one data
// folder, while rows are imported and move to a renamed property and other indexes. It checks after
// each kill that no acknowledged write is lost, no transaction is incomplete, and no vk was executed
// twice; then the same for processes that change rows and indexes of tables.
// `npm run faults [-- RUNS]`; prints counts, and exits with 1 at a violation.
import assert from 'node:assert/strict';
import { postOperation, type Answer } from '../harness.ts';
import { temporaryFolder, type Cleaning } from '../folder.ts';
import { killRowWriters } from '../core/log/kill-row-writers.ts';
import { runWaymark, serverFolder, startServed, type Served } from '../process.ts';
import { runsAsked } from './runs.ts';
import { openSocketCalls, type SocketCalls } from './socket-calls.ts';

const runs = runsAsked(process.argv[2]);
const inFlight = 32;
/** The run kills the server after at most this time. */
const lifeMsMax = 300;
/** Of writers of rows, in one data folder. */
const killsPerFolder = 20;

/** A table whose rows are written besides page rules. */
const lamps = {
  name: 'lamps',
  schema: {
    type: 'object',
    properties: { sku: { type: 'string' }, rve: { type: 'number' }, title: { type: 'string' } },
  },
  key: 'sku',
  index: ['rve'],
  search: ['title'],
};

/** The same table with another name of a property, and another index. */
const namedLamps = {
  ...lamps,
  schema: {
    type: 'object',
    properties: {
      ...{ sku: { type: 'string' }, rve: { type: 'number' } },
      name: { type: 'string', 'x-renamed-from': 'title' },
    },
  },
  index: ['name'],
  search: ['name'],
};
const titledLamps = {
  ...lamps,
  schema: {
    type: 'object',
    properties: {
      ...lamps.schema.properties,
      title: { type: 'string', 'x-renamed-from': 'name' },
    },
  },
};

/** An import of rows as one transaction. */
interface Import {
  /** What the keys of its rows begin with. */
  readonly prefix: string;
  isAcknowledged: boolean;
}

const importedRows = 200;

/** A requested write, and its answer if the server sent one. */
interface Write {
  readonly a: string;
  readonly v: Record<string, unknown>;
  readonly vk: string;
  answer?: Answer;
}

const cleanings: (() => unknown)[] = [];
const context: Cleaning = {
  after: (clean) => {
    cleanings.unshift(clean);
  },
};

try {
  await runAll();
  await killAllRowWriters();
} finally {
  for (const clean of cleanings) await clean();
}

/** In several folders: the check after each kill reads the whole log of a folder. */
async function killAllRowWriters(): Promise<void> {
  let acknowledged = 0;
  for (let done = 0; done < runs;) {
    const kills = Math.min(killsPerFolder, runs - done);
    const folder = await temporaryFolder(context);
    acknowledged += await killRowWriters(context, { folder, kills, lifeMsMax: 1_000 });
    done += kills;
    process.stdout.write(
      `${done} kills: ${acknowledged} acknowledged changes of rows, all whole\n`,
    );
  }
}

async function runAll(): Promise<void> {
  const { iniFile } = await serverFolder(context, '[log]\naccess = no\n');
  let served = await startServed(context, iniFile);
  const { adminKey } = served;
  const made = await postOperation(served.url, 'svc1.table.insert', lamps, { apikey: adminKey });
  const table = made.data.id as string;
  const writes: Write[] = [];
  const imports: Import[] = [];
  let [acknowledged, cut] = [0, 0];
  for (let run = 1; run <= runs; run += 1) {
    const before = writes.length;
    await writeUntilKilled(served, adminKey, { writes, imports, table });
    served = await startServed(context, iniFile, { first: false });
    const recent = writes.slice(before);
    await holdRepeats(served, adminKey, recent);
    await holdImports(served, adminKey, imports.splice(0));
    acknowledged += recent.filter(({ answer }) => answer !== undefined).length;
    cut += recent.filter(({ answer }) => answer === undefined).length;
    if (run % 20 === 0 || run === runs) {
      await holdProjections(iniFile);
      process.stdout.write(
        `${run} kills: ${acknowledged} acknowledged, ${cut} cut off, all as promised\n`,
      );
    }
  }
  served.child.kill('SIGKILL');
  await served.closed;
}

/** Sends several writes at a time until the server is killed. */
async function writeUntilKilled(
  served: Served,
  apikey: string,
  {
    writes,
    imports,
    table,
  }: { readonly writes: Write[]; readonly imports: Import[]; readonly table: string },
): Promise<void> {
  const socket = await openSocketCalls(served.url, apikey);
  const killer = setTimeout(() => served.child.kill('SIGKILL'), 20 + Math.random() * lifeMsMax);
  await Promise.all([
    ...Array.from({ length: inFlight }, () => writeOn(socket, writes)),
    importOn(socket, imports),
    changeOn(socket, table),
  ]);
  clearTimeout(killer);
  await served.closed;
}

async function writeOn(socket: SocketCalls, writes: Write[]): Promise<void> {
  for (;;) {
    const write = await nextWrite(socket, writes);
    if (write === undefined) return;
    writes.push(write);
    const answer = await socket.call(write);
    if (answer === undefined) return;
    const code = answer.error?.code;
    // Two writes may concern the same record: the server refuses the later one, which wrote
    // nothing.
    const isLate = code === 'not_found' || code === 'precondition_failed';
    assert.ok(code === undefined || isLate, JSON.stringify(answer));
    if (isLate) writes.splice(writes.indexOf(write), 1);
    else write.answer = answer;
  }
}

/** Imports rows again and again. */
async function importOn(socket: SocketCalls, imports: Import[]): Promise<void> {
  for (;;) {
    const one: Import = { prefix: `import ${Math.random()} `, isAcknowledged: false };
    const ndjson = Array.from({ length: importedRows }, (_, at) => {
      const v = { table: lamps.name, sku: `${one.prefix}${at}`, title: `an imported lamp ${at}` };
      return JSON.stringify({ a: 'svc1.record.insert', v });
    }).join('\n');
    imports.push(one);
    const answer = await socket.call({ a: 'svc1.userinterface.import', v: { ndjson } });
    if (answer === undefined) return;
    assert.equal(answer.data?.imported, importedRows, JSON.stringify(answer));
    one.isAcknowledged = true;
  }
}

/** Renames a property of the table, and changes its indexes, again and again. */
async function changeOn(socket: SocketCalls, id: string): Promise<void> {
  for (let change = 0; ; change += 1) {
    const { schema, index, search } = change % 2 === 0 ? namedLamps : titledLamps;
    const answer = await socket.call({ a: 'svc1.table.edit', v: { id, schema, index, search } });
    if (answer === undefined) return;
    assert.equal(answer.error, undefined, JSON.stringify(answer));
  }
}

/** The rows of an import are all there or none; those of an acknowledged one are. */
async function holdImports(
  { url }: Served,
  apikey: string,
  imports: readonly Import[],
): Promise<void> {
  for (const { prefix, isAcknowledged } of imports) {
    const v = { table: lamps.name, where: { sku: { prefix } }, count: true, limit: 1 };
    const { data, error } = await postOperation(url, 'svc1.record.list', v, { apikey });
    assert.equal(error, undefined, JSON.stringify(error));
    const isNone = data.count === 0 && !isAcknowledged;
    assert.ok(isNone || data.count === importedRows, `${prefix}has ${data.count} rows`);
  }
}

/** An insert, or an edit or invalidate of an earlier insert. */
async function nextWrite(
  socket: SocketCalls,
  writes: readonly Write[],
): Promise<Write | undefined> {
  const vk = `vk ${writes.length} ${Math.random()}`;
  const written = writes[Math.floor(Math.random() * writes.length)];
  const known = written?.answer?.data?.id as string | undefined;
  const kind = Math.random();
  if (written === undefined || known === undefined || kind < 0.5) {
    if (Math.random() < 0.5) {
      const v = { table: lamps.name, sku: vk, title: `a lamp ${writes.length}` };
      return { a: 'svc1.record.insert', v, vk };
    }
    const v = { path: `/${vk.replaceAll(' ', '/')}`, kind: 'content', content: vk };
    return { a: 'svc1.userinterface.insert', v, vk };
  }
  const named = namedBy(written, known);
  const family = familyOf(written);
  const read = await socket.call({ a: `${family}.read`, v: named });
  if (read === undefined) return undefined;
  // Another write may have invalidated it meanwhile.
  if (read.error !== undefined) return nextWrite(socket, []);
  if (kind < 0.9) return { a: `${family}.edit`, v: { ...named, rve: kind }, vk };
  const dry = await socket.call({ a: `${family}.invalidate`, v: named });
  if (dry === undefined) return undefined;
  // A refused write does not claim its vk.
  if (dry.data.records === 0) return nextWrite(socket, []);
  const confirm = dry.data.digest as string;
  return { a: `${family}.invalidate`, v: { ...named, confirm }, vk };
}

/** `svc1.userinterface` or `svc1.record`. */
function familyOf({ a }: Write): string {
  return a.slice(0, a.lastIndexOf('.'));
}

/** The members of an input that name the record of a write. */
function namedBy({ v }: Write, id: string): Record<string, unknown> {
  return v.table === undefined ? { id } : { id, table: v.table };
}

/** Repeats every write: acknowledged ones get the same answer, and none is executed twice. */
async function holdRepeats(
  served: Served,
  apikey: string,
  writes: readonly Write[],
): Promise<void> {
  for (const write of writes) {
    const { a, v, vk, answer } = write;
    const again = await postOperation(served.url, a, v, { apikey, vk });
    if (answer !== undefined) {
      assert.equal(again.replayed, true, `${a} ${vk} was acknowledged and is lost`);
      assert.equal(again.data.id, answer.data.id);
      assert.equal(again.data.seq, answer.data.seq);
    }
    if (!a.endsWith('.insert') || again.error !== undefined) continue;
    const { data } = await postOperation(
      served.url,
      `${familyOf(write)}.read`,
      namedBy(write, again.data.id as string),
      { apikey, qk: 'history' },
    );
    const inserts = data.rows.filter(({ action }: { action: string }) => action === 'insert');
    assert.equal(inserts.length, 1, `${vk} was carried out twice`);
  }
}

/** `waymark check` finds that the projections are the fold of the log. */
async function holdProjections(iniFile: string): Promise<void> {
  const { code, err, out } = await runWaymark(['check', '--data', '--config', iniFile]);
  assert.equal(code, 0, out + err);
}
