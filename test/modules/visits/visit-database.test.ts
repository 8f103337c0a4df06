import assert from 'node:assert/strict';
import { readFile, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, suite, test } from 'node:test';
import { visitNamesMax } from '../../../src/core/log/limits.ts';
import {
  addName,
  breadcrumbDimensions,
  noVisits,
} from '../../../src/modules/visits/visit-counts.ts';
import {
  type DayVisits,
  VisitDatabase,
  prepareVisitDatabase,
  visitKeysPerDayMax,
} from '../../../src/modules/visits/visit-database.ts';
import { temporaryFolder } from '../../folder.ts';

async function opened(t: TestContext, folder?: string) {
  const data = folder ?? (await temporaryFolder(t));
  await prepareVisitDatabase(data);
  const database = new VisitDatabase(data);
  t.after(() => database.close());
  return { data, database };
}

const shape = { dimensions: breadcrumbDimensions, namesMax: visitNamesMax };

function visits(day: string, path: string, hosts: Readonly<Record<string, number>>): DayVisits {
  const counts = noVisits(shape);
  for (const [name, count] of Object.entries(hosts)) {
    counts.visits += count;
    addName(counts.hosts, name, shape, count);
  }
  return { day, path, origin: '*', counts };
}

const span = { from: '2026-01-01', until: '2026-12-31' };

async function all(database: VisitDatabase): Promise<readonly DayVisits[]> {
  const found: DayVisits[] = [];
  for await (const one of database.breadcrumbs.ofAll(span)) found.push(one);
  return found;
}

suite('the database of visits', () => {
  test('adds what several processes count of the same breadcrumb and day', async (t) => {
    const { data, database } = await opened(t);
    const { database: other } = await opened(t, data);
    await Promise.all([
      database.breadcrumbs.add([visits('2026-03-01', 'spring', { 'a.example': 2 })]),
      other.breadcrumbs.add([visits('2026-03-01', 'spring', { 'a.example': 3, 'b.example': 1 })]),
    ]);
    await database.breadcrumbs.add([visits('2026-03-02', 'spring', { '(none)': 1 })]);
    const found = [...database.breadcrumbs.ofKey('spring', undefined, span)];
    assert.deepEqual(
      found.map(({ day, counts }) => [day, counts.visits, Object.fromEntries(counts.hosts)]),
      [
        ['2026-03-01', 6, { 'a.example': 5, 'b.example': 1 }],
        ['2026-03-02', 1, { '(none)': 1 }],
      ],
    );
    assert.deepEqual([...database.breadcrumbs.ofKey('spring', 'http://x.example', span)], []);
    assert.deepEqual([...database.breadcrumbs.ofKey('spring ', undefined, span)], []);
  });

  test('keeps the most frequent hosts, and counts the others together', async (t) => {
    const { database } = await opened(t);
    const many = Array.from({ length: visitNamesMax }, (_, at) => [`made-up-${at}.example`, 1]);
    await database.breadcrumbs.add([visits('2026-03-01', 'spring', Object.fromEntries(many))]);
    await database.breadcrumbs.add([
      visits('2026-03-01', 'spring', { 'real.example': 7, 'new.example': 1 }),
    ]);
    const [found] = database.breadcrumbs.ofKey('spring', '*', span);
    assert.equal(found?.counts.visits, visitNamesMax + 8);
    assert.equal(found.counts.hosts.get('real.example'), 7);
    assert.equal(found.counts.hosts.get('(other)'), 2);
    assert.equal(found.counts.hosts.size, visitNamesMax + 1);
  });

  test('has names that are members of every object, and texts of any kind', async (t) => {
    const { database } = await opened(t);
    const path = '/a\nb\u0000"__proto__';
    const counts = noVisits(shape);
    addName(counts.hosts, '__proto__', shape);
    await database.breadcrumbs.add([{ day: '2026-03-01', path, origin: '*', counts }]);
    const [found] = database.breadcrumbs.ofKey(path, undefined, span);
    assert.deepEqual(found?.path, path);
    assert.deepEqual([...found.counts.hosts], [['__proto__', 1]]);
  });

  test('counts the visits of breadcrumbs above the limit of a day together', async (t) => {
    const { database } = await opened(t);
    const day = '2026-03-01';
    const known = Array.from({ length: visitKeysPerDayMax }, (_, at) =>
      visits(day, `key-${at}`, { '(none)': 1 }),
    );
    await database.breadcrumbs.add(known);
    await database.breadcrumbs.add([
      visits(day, 'late', { '(none)': 1 }),
      visits(day, 'later', { x: 2 }),
    ]);
    await database.breadcrumbs.add([visits(day, 'key-7', { '(none)': 1 })]);
    const [other] = database.breadcrumbs.ofKey('', undefined, span);
    assert.equal(other?.counts.visits, 3);
    assert.deepEqual([...database.breadcrumbs.ofKey('late', undefined, span)], []);
    const [seven] = database.breadcrumbs.ofKey('key-7', undefined, span);
    assert.equal(seven?.counts.visits, 2);
    assert.equal((await all(database)).length, visitKeysPerDayMax + 1);
  });

  test('deletes the days before one', async (t) => {
    const { database } = await opened(t);
    await database.breadcrumbs.add(
      ['2026-03-01', '2026-03-02', '2026-03-03'].map((day) => visits(day, 'k', { x: 1 })),
    );
    await database.breadcrumbs.deleteBefore('2026-03-03');
    assert.deepEqual(
      (await all(database)).map(({ day }) => day),
      ['2026-03-03'],
    );
    assert.equal([...database.breadcrumbs.ofKey('k', undefined, span)].length, 1);
  });

  test('starts with no counts when its file is damaged, and keeps the file', async (t) => {
    const data = await temporaryFolder(t);
    assert.equal(await prepareVisitDatabase(data), undefined);
    const before = new VisitDatabase(data);
    await before.breadcrumbs.add([visits('2026-03-01', 'k', { x: 1 })]);
    await before.close();
    await truncate(join(data, 'visits/data.mdb'), 10);
    const damage = await prepareVisitDatabase(data);
    assert.match(String(damage), /damaged/);
    assert.equal((await readFile(join(data, 'visits-damaged/data.mdb'))).length, 10);
    const { database } = await opened(t, data);
    assert.deepEqual(await all(database), []);
  });
});
