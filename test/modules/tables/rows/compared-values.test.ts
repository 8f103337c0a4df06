import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openDatabases, openEnvironment } from '../../../../src/core/log/databases.ts';
import { parseJson } from '../../../../src/core/values/json/parse.ts';
import { indexKey } from '../../../../src/modules/tables/log/index-key.ts';
import { scratchStore } from '../../../core/log/scratch.ts';
import { startSite, type TestSite } from '../../../harness.ts';
import { temporaryFolder } from '../../../folder.ts';
import { indexBuilder } from '../../../../src/modules/tables/log/index-build.ts';
import { upkeep } from '../../../../src/modules/upkeep/upkeep.ts';
import { storedTables } from '../../../../src/modules/tables/log/family.ts';

async function things(site: TestSite, ids: readonly string[]): Promise<void> {
  const properties = {
    ...{ name: { type: 'string' }, n: { type: 'number' }, i: { type: 'integer' } },
    at: { type: 'string', format: 'date-time' },
  };
  const made = await site.call('table.insert', {
    ...{ name: 'things', schema: { properties }, key: 'name', index: ['n', 'at'] },
  });
  assert.equal(made.error, undefined);
  for (const [at, id] of ids.entries()) {
    const v = parseJson(`{"table":"things","name":"r${at}",${id}}`) as object;
    const { error, data } = await site.call('record.insert', v);
    assert.equal(error, undefined, JSON.stringify(error));
    assert.deepEqual(data.problems, []);
  }
}

async function names(site: TestSite, input: string): Promise<readonly string[]> {
  const v = parseJson(`{"table":"things",${input}}`) as object;
  const { data, error } = await site.call('record.list', v);
  assert.equal(error, undefined, JSON.stringify(error));
  return (data.rows as { name: string }[]).map(({ name }) => name);
}

test('numbers are sorted and found by their exact values', async (t) => {
  const site = await startSite(t);
  const numbers = [
    ...['9007199254740993', '9007199254740992', '9007199254740994', '-1e400', '1e400', '0.1'],
    '0.10000000000000000001',
  ];
  await things(
    site,
    numbers.map((number) => `"n":${number}`),
  );
  const sorted = ['r3', 'r5', 'r6', 'r1', 'r0', 'r2', 'r4'];
  assert.deepEqual(await names(site, '"sort":"n"'), sorted);
  assert.deepEqual(await names(site, '"sort":"-n"'), sorted.toReversed());
  assert.deepEqual(await names(site, '"where":{"n":9007199254740993}'), ['r0']);
  assert.deepEqual(await names(site, '"where":{"n":9007199254740992}'), ['r1']);
  assert.deepEqual(await names(site, '"where":{"n":{">":9007199254740992}},"sort":"n"'), [
    ...['r0', 'r2', 'r4'],
  ]);
  assert.deepEqual(await names(site, '"where":{"n":{"<=":9007199254740992,">":0.1}},"sort":"n"'), [
    ...['r6', 'r1'],
  ]);
  assert.deepEqual(await names(site, '"where":{"n":{"in":[0.1,9007199254740993]}},"sort":"n"'), [
    ...['r5', 'r0'],
  ]);
  const { data } = await site.call('record.get', { table: 'things', name: 'r0' });
  assert.equal(JSON.stringify(data.n), '9007199254740993');
});

test('a schema limits numbers by their exact values', async (t) => {
  const site = await startSite(t);
  const schema = parseJson(
    '{"properties":{"n":{"type":"integer","maximum":9223372036854775807,"multipleOf":1},' +
      '"list":{"type":"array","uniqueItems":true},"one":{"enum":[9007199254740993,1]}}}',
  );
  const made = await site.call('table.insert', { name: 'things', schema });
  assert.equal(made.error, undefined, JSON.stringify(made.error));
  const cases = [
    ['"n":9223372036854775807', undefined],
    ['"n":9223372036854775808', 'out_of_range'],
    ['"n":9007199254740993.5', 'wrong_type'],
    ['"n":7', undefined],
    ['"one":9007199254740993', undefined],
    ['"one":9007199254740992', 'bad_format'],
    ['"list":[9007199254740993,9007199254740992]', undefined],
    ['"list":[9007199254740993,9007199254740993]', 'bad_format'],
  ] as const;
  for (const [field, reason] of cases) {
    const v = parseJson(`{"table":"things",${field}}`) as object;
    const { data } = await site.call('record.insert', v);
    const [problem] = data.problems as { reason: string; field: string }[];
    assert.equal(problem?.reason, reason, field);
  }
});

test('date-times are sorted and found as instants, and shown as they were sent', async (t) => {
  const site = await startSite(t);
  const texts = [
    ...['2026-11-29T10:00:00Z', '2026-11-29T10:30:00+01:00', '2026-11-29T10:00:00.5Z'],
    ...['2026-11-29T12:00:00.000+02:00', '2026-11-29T09:30:00.000001Z', '2026-11-29t09:59:59z'],
  ];
  await things(
    site,
    texts.map((text) => `"at":"${text}"`),
  );
  const sorted = ['r1', 'r4', 'r5', 'r0', 'r3', 'r2'];
  assert.deepEqual(await names(site, '"sort":"at"'), sorted);
  assert.deepEqual(await names(site, '"where":{"at":"2026-11-29T11:00:00+01:00"}'), ['r0', 'r3']);
  const range = '{">":"2026-11-29T10:30:00+01:00","<":"2026-11-29T10:00:00.000Z"}';
  assert.deepEqual(await names(site, `"where":{"at":${range}},"sort":"at"`), ['r4', 'r5']);
  const { data } = await site.call('record.get', { table: 'things', name: 'r3' });
  assert.equal(data.at, '2026-11-29T12:00:00.000+02:00');
  // As in an index, so in the past, which has none.
  const { seq } = (await site.call('record.get', { table: 'things', name: 'r5' })).data;
  const then = `"sort":"at","as_of":"${String(seq)}"`;
  assert.deepEqual(await names(site, then), sorted);
});

test('an index of the layout before instants is built anew', async (t) => {
  const table = {
    name: 'things',
    index: ['at'],
    schema: { properties: { at: { format: 'date-time' } } },
  };
  const folder = await temporaryFolder(t);
  const first = await scratchStore(t, { folder });
  const at = ['2026-11-29T10:00:00Z', '2026-11-29T10:30:00+01:00'];
  await first.commit('test', () => ({
    drafts: [
      { family: 'table', id: 't', action: 'insert', data: table },
      ...at.map((text, n) => {
        const data = { table: 'things', at: text };
        return { family: 'record', id: `r${n}`, action: 'insert', data } as const;
      }),
    ],
    answer: () => undefined,
  }));
  await first.close();
  const former = openEnvironment(folder);
  former.transactionSync(() => {
    const { meta, rowindex } = openDatabases(former);
    rowindex.clearSync();
    for (const [n, text] of at.entries()) {
      rowindex.putSync(indexKey('things', 'at', text, `r${n}`), '');
    }
    meta.putSync('schema', '9');
  });
  await former.close();

  const second = await scratchStore(t, { folder });
  await second.part(indexBuilder).build(new AbortController().signal, () => undefined);
  const steps = [...second.of(storedTables).rowsByIndex('things', { field: 'at' })];
  assert.deepEqual(
    steps.map(({ id }) => id),
    ['r1', 'r0'],
  );
  for await (const { differences } of second.part(upkeep).verify())
    assert.deepEqual(differences, []);
});
