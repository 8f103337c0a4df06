import assert from 'node:assert/strict';
import { test } from 'node:test';
import { check } from 'recheck';
import { readPatterns, type Pattern } from './patterns.ts';

/**
 * Regular expressions that are not checked, by the start of their place, each with the reason why
 * no input makes them slow for somebody else.
 */
const unchecked: Readonly<Record<string, string>> = {
  'public/engines/form/controls.js':
    "the pattern of the site's own schema, for what a visitor types, in that visitor's browser",
};

const patterns = ['src/**/*.ts', 'public/**/*.{js,json}'].flatMap(readPatterns);

function reasonOf({ place }: Pattern): string | undefined {
  return Object.keys(unchecked).find((start) => place.startsWith(start));
}

test('every regular expression takes linear time', { timeout: 60_000 }, async () => {
  const slow: string[] = [];
  const texts = new Map(
    patterns.flatMap(({ source, flags, place }) =>
      source === undefined ? [] : [[`/${source}/${flags}`, { source, flags, place }]],
    ),
  );
  for (const [text, { source, flags, place }] of texts) {
    const found = await check(source, flags, { randomSeed: 1 });
    if (found.status === 'unknown') slow.push(`${place} ${text}: ${found.error.kind}`);
    if (found.status === 'vulnerable') slow.push(`${place} ${text}: ${found.complexity.summary}`);
  }
  assert.deepEqual(slow, [], 'patterns that a long input makes slow');
});

test('every regular expression is known before the program runs, or exempt with a reason', () => {
  const unknown = patterns.filter(({ source }) => source === undefined);
  const places = unknown.filter((pattern) => reasonOf(pattern) === undefined);
  assert.deepEqual(
    places.map(({ place }) => place),
    [],
    'make it of constants, so that it can be checked',
  );
  assert.deepEqual(unknown.map(reasonOf).sort(), Object.keys(unchecked).sort());
});
