import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../src/observability/log.ts';
import { PageCounter } from '../../src/pages/page-counter.ts';
import { pagesCountedEach, pagesCountedExactly } from '../../src/pages/limits.ts';
import type { DayVisits, VisitDatabase } from '../../src/store/visits/visit-database.ts';

const nowMs = Date.UTC(2026, 10, 28);

function counterOf(retentionMs = 86_400_000) {
  const written: DayVisits[] = [];
  const database: Partial<VisitDatabase> = {
    add(all) {
      written.push(...all);
      return Promise.resolve();
    },
    deleteBefore: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  const counter = new PageCounter({
    ...{ database: database as VisitDatabase, retentionMs, log: silentLog },
    now: () => nowMs,
  });
  return { counter, written };
}

const place = { origin: 'https://one.example', path: '/' };
const page = { status: 200, source: 'rule:1' };

test('answers of the site are counted by path and day, and no failure', async () => {
  const { counter, written } = counterOf();
  counter.count(place, page, nowMs);
  counter.count(place, { status: 304, source: 'disk:www' }, nowMs);
  counter.count(place, { status: 404, source: 'none' }, nowMs);
  counter.count(place, { status: 500, source: 'rule:1' }, nowMs);
  counter.count(place, { status: 200, source: 'svc1' }, nowMs);
  await counter.close();
  assert.deepEqual(
    written.map(({ counts: { visits }, ...one }) => ({ ...one, visits })),
    [{ ...place, day: '2026-11-28', visits: 2 }],
  );
});

test('of many answers in a short time, one stands for several', async () => {
  const { counter, written } = counterOf();
  const many = pagesCountedExactly + 100 * pagesCountedEach;
  for (let at = 0; at < many; at += 1) counter.count(place, page, nowMs);
  await counter.close();
  const visits = written[0]?.counts.visits ?? 0;
  assert.ok(Math.abs(visits - many) <= pagesCountedEach, String(visits));
});

test('without a retention nothing is counted', async () => {
  const { counter, written } = counterOf(0);
  counter.count(place, page, nowMs);
  await counter.close();
  assert.deepEqual(written, []);
});
