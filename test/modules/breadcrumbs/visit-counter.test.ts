import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Visitor, unknownLocation } from '../../../src/core/http/visitor.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import {
  VisitCounter,
  visitKeysBufferedMax,
} from '../../../src/modules/breadcrumbs/visit-counter.ts';
import {
  type BreadcrumbDimension,
  breadcrumbDimensions,
} from '../../../src/modules/visits/visit-counts.ts';
import type { DayVisits, VisitTable } from '../../../src/modules/visits/visit-database.ts';

const dayMs = 86_400_000;

function visitorAt(nowMs: number): Visitor {
  const visitor: Partial<Visitor> = {
    nowMs,
    prepare: () => undefined,
    devices: () => new Set(['desktop']),
    location: () => unknownLocation,
  };
  return visitor as Visitor;
}

function hopOf(path: string) {
  return { stored: { rule: { path, origin: '*' } }, branch: { name: 'default' } };
}

/** A counter with a list as its database, which can be full. */
function counterOf() {
  const state = { isFull: false, nowMs: 100 * dayMs, warnings: 0, before: '' };
  const written: DayVisits[] = [];
  const table: Partial<VisitTable<BreadcrumbDimension>> = {
    shape: { dimensions: breadcrumbDimensions, namesMax: 100, keysMax: 10_000 },
    add(all) {
      if (state.isFull) return Promise.reject(new Error('disk full'));
      written.push(...all);
      return Promise.resolve();
    },
    deleteBefore(day) {
      state.before = day;
      return Promise.resolve();
    },
  };
  const counter = new VisitCounter({
    table: table as VisitTable<BreadcrumbDimension>,
    retentionMs: 30 * dayMs,
    now: () => state.nowMs,
    log: { ...silentLog, warn: () => (state.warnings += 1) },
  });
  const visit = (path: string): void => {
    counter.count({ hops: [hopOf(path)] } as unknown as Parameters<typeof counter.count>[0], {
      fields: {},
      visitor: visitorAt(state.nowMs),
    });
  };
  const sum = (path: string): number =>
    written.filter((one) => one.path === path).reduce((all, one) => all + one.counts.visits, 0);
  return { state, counter, visit, written, sum };
}

test('visits that cannot be written are written later, once', async () => {
  const { state, counter, visit, sum, written } = counterOf();
  const keys = Array.from({ length: 1_200 }, (_, at) => `key-${at}`);
  keys.forEach(visit);
  state.isFull = true;
  await counter.flush();
  await counter.flush();
  assert.equal(written.length, 0);
  assert.equal(state.warnings, 1);
  visit('key-7');
  state.isFull = false;
  await counter.flush();
  assert.deepEqual([sum('key-7'), sum('key-1199')], [2, 1]);
  assert.equal(written.length, keys.length);
  await counter.close();
});

test('breadcrumbs above the limit of a process are counted together', async () => {
  const { counter, visit, sum, written } = counterOf();
  for (let at = 0; at < visitKeysBufferedMax + 5; at += 1) visit(`key-${at}`);
  await counter.close();
  assert.equal(written.length, visitKeysBufferedMax + 1);
  assert.equal(sum(''), 5);
});

test('counts are deleted once a day, by their retention', async () => {
  const { state, counter, visit } = counterOf();
  await counter.flush();
  assert.equal(state.before, '1970-03-13');
  state.before = '';
  visit('k');
  await counter.flush();
  assert.equal(state.before, '');
  state.nowMs += dayMs;
  await counter.flush();
  assert.equal(state.before, '1970-03-14');
  counter.retain(0);
  await counter.flush();
  assert.equal(state.before, '1970-04-13');
  await counter.close();
});

test('a visit after the end is not counted', async () => {
  const { counter, visit, written } = counterOf();
  await counter.close();
  visit('late');
  await counter.flush();
  assert.deepEqual(written, []);
});
