import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { open, type Database, type RootDatabase } from 'lmdb';
import { environmentOptions, type ConditionalPut } from '../../../src/core/log/databases.ts';
import { temporaryFolder } from '../../folder.ts';

interface Opened {
  readonly environment: RootDatabase<string, string>;
  readonly database: Database<string, string>;
}

async function openPlain(t: TestContext): Promise<Opened> {
  const environment = open<string, string>({
    path: await temporaryFolder(t),
    ...environmentOptions,
  });
  t.after(() => environment.close());
  return { environment, database: environment.openDB<string, string>('plain', {}) };
}

suite('lmdb, on which the store relies', () => {
  for (const [way, keeps] of [
    ['transaction', true],
    ['childTransaction', false],
    ['transactionSync', false],
  ] as const) {
    test(`${keeps ? 'keeps' : 'rolls back'} the writes before an error in ${way}`, async (t) => {
      const { environment, database } = await openPlain(t);
      const failing = async () => {
        await environment[way](() => {
          database.putSync('before', 'written');
          throw new Error('in the middle');
        });
      };
      await assert.rejects(failing, /in the middle/);
      assert.equal(database.get('before'), keeps ? 'written' : undefined);
    });
  }

  test('syncs a commit before readers see it', async (t) => {
    assert.equal(environmentOptions.overlappingSync, false);
    assert.ok(!('noSync' in environmentOptions) && !('noMetaSync' in environmentOptions));
    const { environment, database } = await openPlain(t);
    const order: string[] = [];
    const committed = environment
      .childTransaction(() => {
        database.putSync('one', 'value');
      })
      .then(() => order.push('committed'));
    const flushed = environment.flushed.then(() => order.push('flushed'));
    assert.equal(database.get('one'), undefined, 'not to be seen before');
    await Promise.all([committed, flushed]);
    assert.equal(order.length, 2);
    assert.equal(database.get('one'), 'value');
  });

  test('appends only a key that is the last, and returns whether it did', async (t) => {
    const { environment } = await openPlain(t);
    const numbered = environment.openDB<string, number>('numbered', {
      encoding: 'string',
      keyEncoding: 'uint32',
    });
    environment.transactionSync(() => {
      const appending = numbered as unknown as ConditionalPut<number>;
      const put = (key: number, value: string) => appending.putSync(key, value, { append: true });
      assert.deepEqual(
        [put(1, 'a'), put(300, 'b'), put(256, 'c'), put(300, 'd'), put(65_536, 'e')],
        [true, true, false, false, true],
      );
    });
    const entries = [...numbered.getRange()].map(({ key, value }) => `${key}${value}`);
    assert.deepEqual(entries, ['1a', '300b', '65536e']);
  });

  test('puts with noOverwrite only the first value of a key, and returns whether it did', async (t) => {
    const { environment } = await openPlain(t);
    const sorted = environment.openDB<string, string>('sorted', {
      encoding: 'string',
      dupSort: true,
    });
    environment.transactionSync(() => {
      const first = sorted as unknown as ConditionalPut<string>;
      const put = (key: string, value: string) => first.putSync(key, value, { noOverwrite: true });
      assert.deepEqual([put('a', '1'), put('a', '2'), put('b', '2')], [true, false, true]);
    });
    const entries = [...sorted.getRange()].map(({ key, value }) => `${key}${value}`);
    assert.deepEqual(entries, ['a1', 'b2']);
  });

  test('gets the first value of a key, and the last one with a reverse range', async (t) => {
    const { environment } = await openPlain(t);
    const sorted = environment.openDB<string, string>('sorted', {
      encoding: 'string',
      dupSort: true,
    });
    environment.transactionSync(() => {
      for (const value of ['["b",1]', '~', '!', '["a",300000]']) sorted.putSync('k', value);
    });
    assert.equal(sorted.get('k'), '!');
    const last = [...sorted.getRange({ start: 'z', reverse: true, limit: 1 })];
    assert.deepEqual(last, [{ key: 'k', value: '~' }]);
  });

  test('needs maxDbs for more than twelve databases', async (t) => {
    const { environment } = await openPlain(t);
    for (let n = 0; n < 14; n += 1) environment.openDB({ name: `database ${n}` });
  });

  test('enlarges a map that is too small', async (t) => {
    const environment = open<string, string>({
      path: await temporaryFolder(t),
      ...environmentOptions,
      mapSize: 2 ** 18,
    });
    t.after(() => environment.close());
    await environment.childTransaction(() => {
      for (let n = 0; n < 64; n += 1) environment.putSync(`${n}`, 'x'.repeat(2 ** 16));
    });
    assert.equal(environment.get('63')?.length, 2 ** 16);
  });
});
