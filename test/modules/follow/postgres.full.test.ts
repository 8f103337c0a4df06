import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { Client } from 'pg';
import { uuidv7 } from 'uuidv7';
import type { RowPacket } from '../../../src/modules/follow/follow-tables.ts';
import { PostgresTarget } from '../../../src/modules/follow/postgres.ts';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import type { Cleaning } from '../../folder.ts';
import { startPostgres } from './postgres-server.ts';

const server = await startPostgres({ after });
const skip = typeof server === 'string' && server;

const schema = {
  properties: {
    sku: { type: 'string' },
    price: { type: 'number' },
    stock: { type: ['integer', 'null'] },
    made: { type: 'string', format: 'date-time' },
    tags: { type: 'array' },
    pin: { type: 'string', writeOnly: true },
  },
};

const products = { name: 'products', schema };
const [one, other] = [uuidv7(), uuidv7()];
let seq = 0;

/** The next change of a row; without fields, its end. */
function change(id: string, fields?: JsonObject): RowPacket {
  seq += 1;
  const record = fields === undefined ? null : { id, seq, table: 'products', ...fields };
  return { seq, table: 'products', id, record };
}

suite('a copy in PostgreSQL', { skip }, () => {
  const url = typeof server === 'string' ? '' : server.url;
  let schemas = 0;

  /** A target with a schema of PostgreSQL of its own, and a function to query it. */
  async function openTarget(t: Cleaning) {
    schemas += 1;
    const options = { url, schema: `copy ${schemas}` };
    const target = new PostgresTarget(options);
    await target.open();
    const client = new Client({ connectionString: url });
    client.on('error', () => undefined);
    await client.connect();
    await client.query(`set search_path to "${options.schema}"`);
    t.after(async () => {
      await target.close();
      await client.end().catch(() => undefined);
    });
    const query = async (text: string) => (await client.query<JsonObject>(text)).rows;
    return { target, query, options };
  }

  test('has typed columns, and what fits none in _unknowns_; no writeOnly property', async (t) => {
    const { target, query } = await openTarget(t);
    assert.equal(await target.position(products), 0);
    const row = { sku: 'P-1', price: 1.5, stock: 3, made: '2026-11-23T10:00:00Z', tags: ['a'] };
    const odd = { sku: 'a\0b\ud800', stock: 'many', colour: 'red', _unknowns_: { price: 'x' } };
    await target.apply([change(one, row), change(other, odd)]);
    const types = await query(
      `select attname, format_type(atttypid, atttypmod) as type from pg_attribute
       where attrelid = 'products'::regclass and attnum > 0 order by attnum`,
    );
    assert.deepEqual(
      types.map(({ attname, type }) => [attname, type]),
      [
        ['id', 'uuid'],
        ['seq', 'bigint'],
        ['sku', 'text'],
        ['price', 'double precision'],
        ['stock', 'bigint'],
        ['made', 'timestamp with time zone'],
        ['tags', 'jsonb'],
        ['_unknowns_', 'jsonb'],
      ],
    );
    const rows = await query(
      'select sku, price, stock, tags, _unknowns_ from products order by id',
    );
    assert.deepEqual(rows, [
      { sku: 'P-1', price: 1.5, stock: '3', tags: ['a'], _unknowns_: null },
      {
        ...{ sku: 'a\u{fffd}b\u{fffd}', price: null, stock: null, tags: null },
        _unknowns_: { price: 'x', stock: 'many', colour: 'red' },
      },
    ]);
  });

  test('has each change once: repeated ones change nothing, also after a restart', async (t) => {
    const { target, query, options } = await openTarget(t);
    await target.position(products);
    const changes = [change(one, { sku: 'a' }), change(other, { sku: 'b' }), change(one)];
    await target.apply(changes.slice(0, 2));
    await target.apply(changes);
    assert.deepEqual(await query('select sku from products'), [{ sku: 'b' }]);
    await target.close();
    const again = new PostgresTarget(options);
    t.after(() => again.close());
    await again.open();
    assert.equal(await again.position(products), seq);
    await again.apply([...changes, change(other, { sku: 'c' })]);
    assert.deepEqual(await query('select sku, seq from products'), [{ sku: 'c', seq: `${seq}` }]);
  });

  test('follows its schema: new columns, other types, properties that become writeOnly', async (t) => {
    const { target, query } = await openTarget(t);
    await target.position(products);
    await target.apply([
      change(one, { sku: '12', price: 1.5, stock: 3 }),
      change(other, { sku: 'twelve', price: 2, stock: 4 }),
    ]);
    const blue = change(one, { sku: 12, colour: 'blue' });
    assert.equal(target.needsSchema(blue), true);
    const { properties } = schema;
    await target.update({
      name: 'products',
      schema: {
        properties: {
          ...properties,
          sku: { type: 'integer' },
          price: { type: 'string' },
          stock: { type: 'integer', writeOnly: true },
          colour: { type: 'string' },
        },
      },
    });
    const select = 'select sku, price, stock, colour from products order by id';
    assert.deepEqual(await query(select), [
      { sku: '12', price: '1.5', stock: null, colour: null },
      { sku: null, price: '2', stock: null, colour: null },
    ]);
    assert.equal(target.needsSchema(blue), false);
    await target.apply([blue]);
    assert.deepEqual((await query(select))[0], {
      ...{ sku: '12', price: null, stock: null, colour: 'blue' },
    });
  });

  test('leaves columns alone that others have added', async (t) => {
    const { target, query } = await openTarget(t);
    await target.position(products);
    await target.apply([change(one, { sku: 'a' })]);
    await query(`alter table products add column note text default 'mine'`);
    await target.apply([change(one, { sku: 'b' })]);
    assert.deepEqual(await query('select sku, note from products'), [{ sku: 'b', note: 'mine' }]);
  });

  test('has one writer at a time', async (t) => {
    const { target, options } = await openTarget(t);
    const second = new PostgresTarget(options);
    t.after(() => second.close());
    await assert.rejects(second.open(), { code: 'conflict' });
    await target.close();
    await second.open();
  });

  test('is whole after a crash of the database', async (t) => {
    assert.ok(typeof server === 'object');
    const { target } = await openTarget(t);
    await target.position(products);
    await target.apply([change(one, { sku: 'a' })]);
    const position = seq;
    await server.crash();
    const lost = change(one, { sku: 'b' });
    await assert.rejects(target.apply([lost]), { code: 'unavailable' });
    await target.open();
    assert.equal(await target.position(products), position);
    await target.apply([lost]);
    await target.restart('products');
    assert.equal(await target.position(products), 0);
  });

  test('names the error of the database', async () => {
    const nowhere = new PostgresTarget({ url: url.replace(/postgres$/, 'nowhere'), schema: 's' });
    await assert.rejects(nowhere.open(), { code: 'conflict', message: /"nowhere" does not exist/ });
    const closed = new PostgresTarget({ url: 'postgres://127.0.0.1:1/x', schema: 's' });
    await assert.rejects(closed.open(), { code: 'unavailable', message: /ECONNREFUSED/ });
  });
});
