import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import type { Cleaning } from '../../folder.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { startSite, type TestSite } from '../../harness.ts';

const schema = {
  type: 'object',
  required: ['sku'],
  properties: {
    sku: { type: 'string' },
    stock: { type: 'integer' },
    pin: { type: 'string', writeOnly: true },
  },
};

const loopback = '[fetch]\nallow_private = 127.0.0.0/8, ::1/128\n';

/** A data host with anonymous access, and a site that has its rows there. */
async function startPair(t: Cleaning, ini = loopback) {
  const host = await startSite(t);
  const open = { read: ['anonymous'], insert: ['anonymous'], edit: ['anonymous'] };
  const table = { name: 'products', schema, key: 'sku', ...open };
  const made = await host.call('svc1.table.insert', table);
  assert.equal(made.error, undefined);
  const site = await startSite(t, { ini });
  const url = `${host.url}/svc1/ws`;
  const own = await site.call('svc1.table.insert', { name: 'products', host: url });
  assert.equal(own.error, undefined, JSON.stringify(own.error));
  return { host, site, tableId: made.data.id as string };
}

async function stateOf(site: TestSite): Promise<JsonObject> {
  const { data } = await site.call('svc1.server.status', {});
  return (data.hosts as readonly JsonObject[])[0] ?? {};
}

async function untilState(site: TestSite, state: string): Promise<JsonObject> {
  let now = await stateOf(site);
  while (now.state !== state) {
    await wait(20);
    now = await stateOf(site);
  }
  return now;
}

async function changesSeen(site: TestSite): Promise<readonly JsonObject[]> {
  const { data } = await site.call('svc1.event.list', { type: 'record.changed', limit: 100 });
  const rows = data.rows as readonly { readonly data: JsonObject }[];
  return rows.map((row) => row.data).filter(({ table }) => table === 'products');
}

async function untilChanges(site: TestSite, count: number): Promise<readonly JsonObject[]> {
  let seen = await changesSeen(site);
  while (seen.length < count) {
    await wait(20);
    seen = await changesSeen(site);
  }
  return seen;
}

test('a table on another server has its schema, and passes calls on', async (t) => {
  const { host, site, tableId } = await startPair(t);
  await untilState(site, 'connected');
  const known = (await site.call('svc1.record.schema', { table: 'products' })).data;
  assert.deepEqual([known.schema, known.key], [schema, 'sku']);

  const v = { table: 'products', sku: 'P-1', stock: 3, pin: '1234' };
  const inserted = await site.call('svc1.record.insert', v, { vk: 'form-1' });
  assert.equal(inserted.error, undefined, JSON.stringify(inserted.error));
  const again = await site.call('svc1.record.insert', v, { vk: 'form-1' });
  assert.deepEqual([again.data.id, again.replayed], [inserted.data.id, true]);
  const there = await host.call('svc1.record.read', { table: 'products', sku: 'P-1' });
  assert.equal(there.data.stock, 3);
  const edit = { table: 'products', sku: 'P-1', stock: 4 };
  assert.equal((await site.call('svc1.record.edit', edit)).data.stock, 4);
  const listed = await site.call('svc1.record.list', { table: 'products' });
  assert.deepEqual(
    listed.data.rows.map((row: JsonObject) => [row.sku, row.stock, row.pin]),
    [['P-1', 4, undefined]],
  );
  const missing = await site.call('svc1.record.read', { table: 'products', sku: 'P-2' });
  assert.equal(missing.error?.code, 'not_found');

  const properties = { ...schema.properties, colour: { type: 'string' } };
  await host.call('svc1.table.edit', { id: tableId, schema: { ...schema, properties } });
  const colour = async () =>
    (await site.call('svc1.record.schema', { table: 'products' })).data.schema.properties.colour;
  while ((await colour()) === undefined) await wait(20);
});

test('each change of a row there raises one event here, also after a restart of the follower', async (t) => {
  const { host, site } = await startPair(t);
  await untilState(site, 'connected');
  const { data } = await host.call('svc1.record.insert', { table: 'products', sku: 'P-1' });
  await host.call('svc1.record.edit', { table: 'products', sku: 'P-1', pin: '1234' });
  const [edit, insert] = await untilChanges(site, 2);
  assert.deepEqual([insert?.id, insert?.action, insert?.fields], [data.id, 'insert', ['sku']]);
  assert.deepEqual([edit?.action, edit?.fields], ['edit', []]);

  // The follower ends with the host of the table, and begins again with it.
  const { rows } = (await site.call('svc1.table.list', {})).data;
  const [{ id, host: url }] = rows;
  await site.call('svc1.table.edit', { id, host: `${url}?` });
  await site.call('svc1.table.edit', { id, host: url });
  await host.call('svc1.record.insert', { table: 'products', sku: 'P-2' });
  const seen = await untilChanges(site, 3);
  const seqs = seen.map(({ seq }) => Number(seq));
  assert.deepEqual(
    seqs,
    [...new Set(seqs)].toSorted((one, other) => other - one),
  );
});

test('without its host, a table has its last schema, and says why nothing can be written', async (t) => {
  const { host, site } = await startPair(t);
  await untilState(site, 'connected');
  await host.waymark.stop(0);
  const { problem } = await untilState(site, 'waiting');
  assert.match(JSON.stringify(problem), /websocket|reached/);
  const known = await site.call('svc1.record.schema', { table: 'products' });
  assert.deepEqual(known.data.schema, schema);
  const { error } = await site.call('svc1.record.insert', { table: 'products', sku: 'P-1' });
  assert.equal(error?.code, 'unavailable');
  assert.match(error.message, /^The data host localhost:\d+ cannot be reached/);
  // A hidden field is unknown here, whatever the host would say about it.
  for (const filter of [{ where: { pin: '1234' } }, { sort: '-pin' }]) {
    const listed = await site.call('svc1.record.list', { table: 'products', ...filter });
    assert.equal(listed.error?.code, 'invalid');
    assert.match(listed.error.message, /names "pin", which is no field of products/);
  }
  await site.untilLogged(/The server uses the last known schema/);
});

test('an address that the ini file does not permit is not connected to', async (t) => {
  const { site } = await startPair(t, '');
  const { problem } = await untilState(site, 'waiting');
  assert.match(JSON.stringify(problem), /address is not allowed/);
  const { error } = await site.call('svc1.record.get', { table: 'products' });
  assert.equal(error?.code, 'unavailable');
});

test('a table of the ini file has the key for its host in a file', async (t) => {
  const host = await startSite(t);
  await host.call('svc1.table.insert', { name: 'products', schema, key: 'sku' });
  const scopes = ['record.read:products', 'record.write:products'];
  const { data: key } = await host.call('svc1.key.insert', { name: 'shop', scopes });
  const site = await startSite(t, {
    ini: `${loopback}[table.products]\nhost = ${host.url}\nhost_key_file = data-host.key\n`,
    files: { 'data-host.key': `${key.key}\n` },
  });
  await untilState(site, 'connected');
  const inserted = await site.call('svc1.record.insert', { table: 'products', sku: 'P-1' });
  assert.equal(inserted.error, undefined, JSON.stringify(inserted.error));
  const [{ by }] = (
    await host.call('svc1.record.read', { table: 'products', sku: 'P-1' }, { qk: 'history' })
  ).data.rows;
  assert.equal(by, key.id);
  assert.equal((await untilChanges(site, 1)).length, 1);
  // The ini file says nothing of the schema, which stays the one of the host.
  const { data } = await site.call('svc1.record.schema', { table: 'products' });
  assert.equal(data.key, 'sku');
  const socket = await site.socket(site.adminKey);
  const { error } = await socket.call('svc1.record.subscribe', { table: 'products' });
  assert.deepEqual([error?.code, error?.field], ['conflict', 'table']);
});

test('the table decides here who may call its host, and hides what its schema hides', async (t) => {
  const { site } = await startPair(t);
  await untilState(site, 'connected');
  const { data: key } = await site.call('svc1.key.insert', { name: 'r', scopes: ['record.read'] });
  const read = { apikey: key.key };
  const v = { table: 'products', sku: 'P-1' };
  assert.equal((await site.call('svc1.record.insert', v, read)).error?.code, 'forbidden');
  const none = await site.call('svc1.record.get', { table: 'products' }, { apikey: undefined });
  assert.equal(none.error?.code, 'unauthenticated');
  const { rows } = (await site.call('svc1.table.list', {})).data;
  const user = await site.call('svc1.table.edit', { id: rows[0].id, owner: 'sku', read: ['user'] });
  assert.match(user.error?.message ?? '', /user, which a table with a host cannot have/);
});

test('a caller that may write rows of a host but not read them learns none of their values', async (t) => {
  const { site } = await startPair(t);
  await untilState(site, 'connected');
  const { data } = await site.call('svc1.table.list', {});
  const id = (data.rows as { id: string }[])[0]?.id;
  const access = { read: ['admin'], insert: ['anonymous'], edit: ['anonymous'] };
  const edited = await site.call('svc1.table.edit', { id, ...access });
  assert.equal(edited.error, undefined, JSON.stringify(edited.error));
  await site.call('svc1.record.insert', { table: 'products', sku: 'P-1', stock: 770_077_700 });
  const nobody = (verb: string, v: object) =>
    site.call(`svc1.record.${verb}`, { table: 'products', ...v }, { apikey: undefined });
  const inserted = await nobody('insert', { sku: 'P-2', stock: 5 });
  assert.deepEqual([inserted.data?.sku, inserted.data?.stock], ['P-2', 5]);
  const wrong = await nobody('edit', { sku: 'P-1', stock: 'many' });
  assert.deepEqual([wrong.data?.stock, wrong.data?._unknowns_], [undefined, { stock: 'many' }]);
  const dry = await nobody('invalidate', { id: wrong.data?.id });
  assert.equal(dry.data?.records, 1, JSON.stringify(dry));
  for (const one of [inserted, wrong, dry])
    assert.ok(!JSON.stringify(one.data).includes('770077700'));
  const taken = await nobody('insert', { sku: 'P-1' });
  assert.equal(taken.error?.code, 'conflict');
  assert.match(taken.error.message, /another row has its sku already/);
  const all = await nobody('invalidate', { from: '1' });
  assert.deepEqual([all.error?.code, all.error?.field], ['forbidden', 'from']);
});

test('requests and websockets to a host name this server in Via, as a host may be the server itself', async (t) => {
  const seen = {
    request: Promise.withResolvers<string>(),
    upgrade: Promise.withResolvers<string>(),
  };
  const { origin, server } = await httpSource(t, ({ headers }, response) => {
    seen.request.resolve(headers.via ?? '');
    response.writeHead(503).end();
  });
  server.on('upgrade', ({ headers }, socket) => {
    seen.upgrade.resolve(headers.via ?? '');
    socket.destroy();
  });
  const site = await startSite(t, { ini: loopback });
  await site.call('svc1.table.insert', { name: 'products', host: `${origin}/svc1/ws` });
  await site.call('svc1.record.list', { table: 'products' });
  for (const via of [await seen.request.promise, await seen.upgrade.promise]) {
    assert.match(via, /^1\.1 waymark-(?:log|node)-[\da-f]{12}$/);
  }
});
