import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { after, suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { Client } from 'pg';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import {
  type FollowTarget,
  LineTarget,
  followTables,
} from '../../../src/modules/follow/follow-tables.ts';
import { PostgresTarget } from '../../../src/modules/follow/postgres.ts';
import type { Cleaning } from '../../folder.ts';
import { type TestSite, startSite } from '../../harness.ts';
import { program } from '../../process.ts';
import { startPostgres } from './postgres-server.ts';

const server = await startPostgres({ after });
const skip = typeof server === 'string' && server;

const schema = {
  type: 'object',
  properties: {
    sku: { type: 'string' },
    stock: { type: 'integer' },
    pin: { type: 'string', writeOnly: true },
  },
};

async function siteWithTable(t: Cleaning): Promise<TestSite> {
  const site = await startSite(t);
  const { error } = await site.call('svc1.table.insert', { name: 'products', schema, key: 'sku' });
  assert.equal(error, undefined);
  return site;
}

async function insertRow(site: TestSite, fields: object): Promise<string> {
  const { data, error } = await site.call('svc1.record.insert', { table: 'products', ...fields });
  assert.equal(error, undefined);
  return data.id as string;
}

/** Follows in this process until the test ends; resolves failures to `failed`. */
function startFollowing(t: Cleaning, site: TestSite, target: FollowTarget) {
  const stop = new AbortController();
  const retries: string[] = [];
  const ended = followTables({
    ...{ url: site.url, apikey: site.adminKey, tables: ['products'], target, signal: stop.signal },
    report: { applied: () => undefined, retrying: (why) => retries.push(why) },
  });
  ended.catch(() => undefined);
  t.after(async () => {
    stop.abort();
    await ended.catch(() => undefined);
  });
  return { ended, retries, stop };
}

suite('following into PostgreSQL', { skip }, () => {
  const url = typeof server === 'string' ? '' : server.url;
  let schemas = 0;

  async function database(t: Cleaning) {
    schemas += 1;
    const name = `follow_${schemas}`;
    const client = new Client({ connectionString: url });
    client.on('error', () => undefined);
    await client.connect();
    t.after(() => client.end().catch(() => undefined));
    await client.query(`set search_path to ${name}`);
    const query = async (text: string) =>
      (await client.query<JsonObject>(text).catch(() => ({ rows: [] }))).rows;
    const until = async (text: string, expected: readonly object[]): Promise<void> => {
      let rows = await query(text);
      while (JSON.stringify(rows) !== JSON.stringify(expected)) {
        await wait(20);
        rows = await query(text);
      }
    };
    return { name, query, until };
  }

  test('copies rows, their changes and their end, and follows the schema', async (t) => {
    const site = await siteWithTable(t);
    const { name, query, until } = await database(t);
    const first = await insertRow(site, { sku: 'P-1', stock: 1, pin: 'not to be seen' });
    await insertRow(site, { sku: 'P-2', stock: 2, colour: 'red' });
    startFollowing(t, site, new PostgresTarget({ url, schema: name }));
    const select = 'select sku, stock, _unknowns_ from products order by sku';
    const second = { sku: 'P-2', stock: '2', _unknowns_: { colour: 'red' } };
    await until(select, [{ sku: 'P-1', stock: '1', _unknowns_: null }, second]);

    await site.call('svc1.record.edit', { table: 'products', id: first, stock: null });
    await until(select, [{ sku: 'P-1', stock: null, _unknowns_: null }, second]);

    const properties = { ...schema.properties, colour: { type: 'string' } };
    const { data: table } = await site.call('svc1.table.list', {});
    const v = { id: table.rows[0].id, schema: { ...schema, properties } };
    assert.equal((await site.call('svc1.table.edit', v)).error, undefined);
    await insertRow(site, { sku: 'P-3', colour: 'blue' });
    await until(`select sku, colour from products where sku = 'P-3'`, [
      { sku: 'P-3', colour: 'blue' },
    ]);

    const { data: dry } = await site.call('svc1.record.invalidate', {
      table: 'products',
      id: first,
    });
    const undo = { table: 'products', id: first, confirm: dry.digest };
    assert.equal((await site.call('svc1.record.invalidate', undo)).data.done, true);
    await until('select sku from products order by sku', [{ sku: 'P-2' }, { sku: 'P-3' }]);
    const all = await query('select * from products');
    assert.ok(!JSON.stringify(all).includes('not to be seen'));
    assert.ok(all.every((row) => !Object.hasOwn(row, 'pin')));
  });

  test('a killed follower continues where it ended, and writes each change once', async (t) => {
    const site = await siteWithTable(t);
    const { name, query, until } = await database(t);
    const words = ['follow', '--to', url, '--schema', name, '--table', 'products'];
    const env = { ...process.env, WAYMARK_URL: site.url, WAYMARK_APIKEY: site.adminKey };
    const rows = 300;
    let inserted = 0;
    const writing = (async () => {
      for (; inserted < rows; inserted += 1) {
        await insertRow(site, { sku: `P-${String(inserted).padStart(4, '0')}`, stock: inserted });
      }
    })();
    const start = () => spawn(process.execPath, [program, ...words], { env, stdio: 'ignore' });
    let child = start();
    t.after(() => child.kill('SIGKILL'));
    for (let copied = 40; copied <= 120; copied += 40) {
      let count = 0;
      while (count < copied) {
        await wait(10);
        const [row] = await query('select count(*)::int as count from products');
        count = Number(row?.count ?? 0);
      }
      child.kill('SIGKILL');
      await once(child, 'exit');
      child = start();
    }
    await writing;
    await until('select count(*)::int as count, sum(stock)::int as sum from products', [
      { count: rows, sum: (rows * (rows - 1)) / 2 },
    ]);
    const listed = await site.call('svc1.record.list', { table: 'products', limit: 1_000 });
    const ours = (await query('select id, seq from products order by id')).map(({ id, seq }) =>
      JSON.stringify([id, Number(seq)]),
    );
    const theirs = listed.data.rows.map(({ id, seq }: JsonObject) =>
      JSON.stringify([id, Number(seq)]),
    );
    assert.deepEqual(ours, theirs.toSorted());
    child.kill('SIGTERM');
    const [code] = (await once(child, 'exit')) as [number];
    assert.equal(code, 0);
  });

  test('connects again after the database has crashed', async (t) => {
    assert.ok(typeof server === 'object');
    const site = await siteWithTable(t);
    const { name, until } = await database(t);
    const { retries } = startFollowing(t, site, new PostgresTarget({ url, schema: name }));
    await insertRow(site, { sku: 'P-1' });
    await until('select sku from products', [{ sku: 'P-1' }]);
    await server.crash();
    await insertRow(site, { sku: 'P-2' });
    const again = new Client({ connectionString: url });
    await again.connect();
    t.after(() => again.end());
    const select = `select sku from ${name}.products order by sku`;
    while ((await again.query(select)).rows.length < 2) await wait(20);
    assert.match(retries[0] ?? '', /PostgreSQL/);
  });
});

test('lines have each change after a seq', async (t) => {
  const site = await siteWithTable(t);
  await insertRow(site, { sku: 'P-1' });
  const after = (await site.call('svc1.server.status', {})).data.seq as number;
  const id = await insertRow(site, { sku: 'P-2', pin: 'not to be seen' });
  const out = new PassThrough();
  startFollowing(t, site, new LineTarget(out, after));
  for await (const line of createInterface(out)) {
    const { seq, action, record } = JSON.parse(line) as JsonObject;
    assert.deepEqual([seq, action], [after + 1, 'insert']);
    assert.deepEqual(record, { id, table: 'products', sku: 'P-2', seq: after + 1 });
    break;
  }
});

test('a follower without access ends with the reason', async (t) => {
  const site = await siteWithTable(t);
  const { data } = await site.call('svc1.key.insert', { name: 'visits', scopes: ['read'] });
  const follow = (apikey: string, tables: readonly string[]) =>
    followTables({
      ...{ url: site.url, apikey, tables, target: new LineTarget(new PassThrough(), 0) },
      report: { applied: () => undefined, retrying: () => undefined },
      signal: AbortSignal.timeout(30_000),
    });
  await assert.rejects(follow(data.key, ['products']), { code: 'forbidden' });
  await assert.rejects(follow(site.adminKey, ['nothing']), { code: 'not_found' });
  const refused = { code: 'unauthenticated', message: /refuses the API key/ };
  await assert.rejects(follow('wmk_wrong', ['products']), refused);
});
