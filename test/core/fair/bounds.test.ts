import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { limitMessages } from '../../../src/core/values/limit.ts';
import { readSources } from '../../tidy/sources.ts';
import { callerRows } from './bounds/callers.ts';
import { contentRows } from './bounds/content.ts';
import { partRows } from './bounds/parts.ts';
import { constantsWithoutRow, limitsWithoutRow } from './bounds/without.ts';

const rows = [...callerRows, ...contentRows, ...partRows];
const files = readSources('src/**/*.ts').map(({ path, text }) => ({
  name: path.slice('src/'.length),
  text,
}));

/** What takes a share, or waits for one. */
const mechanism = /new (?:SharedLimit|SharedCache|LeaderTokens)[<(]/;

/** Words in the names of constants that several callers may share. */
const words = [
  ...['AtOnce', 'Waiting', 'InFlight', 'Open', 'Running', 'Queue', 'Held', 'Buffered', 'Readers'],
  ...['Pending', 'Sessions', 'Subscriptions', 'Connections'],
];
const sharedName = new RegExp(`const ([a-zA-Z]*(?:${words.join('|')})[a-zA-Z]*Max)\\b`, 'gi');

suite('the table of bounds', () => {
  test('has a row for each place that shares something', () => {
    const inRows = new Set(rows.flatMap(({ of }) => of));
    const sharing = files.filter(
      ({ name, text }) => mechanism.test(text) && !name.includes('fair/'),
    );
    assert.ok(sharing.length >= 15);
    const missing = sharing.filter(({ name }) => !inRows.has(name)).map(({ name }) => name);
    // Others only make the objects that a row names.
    assert.deepEqual(missing, ['cli/serve/workers.ts']);
    const known = new Set(files.map(({ name }) => name));
    assert.deepEqual(
      [...inRows].filter((name) => !known.has(name)),
      [],
    );
  });

  test('has a row for each limit of the log, or says why not', () => {
    const inRows = new Set<string>(rows.flatMap(({ limits = [] }) => limits));
    for (const name of Object.keys(limitMessages)) {
      const has = [inRows.has(name), Object.hasOwn(limitsWithoutRow, name)];
      assert.equal(has.filter(Boolean).length, 1, name);
    }
  });

  test('has a row for each constant that sounds like a shared bound, or says why not', () => {
    const inRows = new Set(rows.flatMap(({ of }) => of));
    const found = files.flatMap(({ name, text }) =>
      [...text.matchAll(sharedName)].map(([, constant = '']) => ({ name, constant })),
    );
    const missing = found.filter(
      ({ name, constant }) => !inRows.has(name) && !Object.hasOwn(constantsWithoutRow, constant),
    );
    assert.deepEqual(missing, []);
    const names = new Set(found.map(({ constant }) => constant));
    assert.deepEqual(
      Object.keys(constantsWithoutRow).filter((name) => !names.has(name)),
      [],
    );
  });
});
