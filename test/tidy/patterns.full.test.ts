import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { check } from 'recheck';
import recheck from 'recheck/package.json' with { type: 'json' };
import { readPatterns, type Pattern } from './patterns.ts';
import { project } from './sources.ts';

/**
 * Regular expressions that are not checked, by the start of their place, each with the reason why no
 * input makes them slow for other users.
 */
const unchecked: Readonly<Record<string, string>> = {
  'src/core/values/linear-pattern.ts':
    'the pattern of the schema of a table, which V8 matches in linear time or refuses',
  'src/modules/rules/replace/replacement.ts':
    'the text that a person replaces, with all of its signs escaped',
  'public/engines/form/controls.js':
    "the pattern of the site's own schema, for what a visitor types, in that visitor's browser",
};

// The regular expressions of built files are not checked: public/console, public/docs.
const patterns = [
  'src/**/*.ts',
  'console/src/**/*.{ts,tsx}',
  'public/*.{js,json}',
  'public/engines/**/*.{js,json}',
].flatMap(readPatterns);

function reasonOf({ place }: Pattern): string | undefined {
  return Object.keys(unchecked).find((start) => place.startsWith(start));
}

/** Steps of matching decide, not time: a busy machine would make a linear pattern look slow. */
const options = {
  randomSeed: 1,
  seedingTimeout: null,
  incubationTimeout: null,
  attackTimeout: null,
  timeout: 60_000,
} as const;

/** The patterns that were proved linear before, with the version of recheck that proved it. */
const checkedFile = join(project, `node_modules/.cache/recheck-${recheck.version}.json`);

function readChecked(): Set<string> {
  return new Set(
    existsSync(checkedFile) ? (JSON.parse(readFileSync(checkedFile, 'utf8')) as string[]) : [],
  );
}

// Takes 4 s, and more on a busy machine.
test('every regular expression takes linear time', { timeout: 360_000 }, async () => {
  const slow: string[] = [];
  const checked = readChecked();
  const before = checked.size;
  for (const { source, flags, place } of patterns) {
    const text = `/${source}/${flags}`;
    if (source === undefined || checked.has(text)) continue;
    const found = await check(source, flags, options);
    if (found.status === 'safe') checked.add(text);
    if (found.status === 'unknown') slow.push(`${place} ${text}: ${found.error.kind}`);
    if (found.status === 'vulnerable') slow.push(`${place} ${text}: ${found.complexity.summary}`);
  }
  assert.deepEqual(slow, [], 'patterns that a long input makes slow');
  if (checked.size === before) return;
  mkdirSync(dirname(checkedFile), { recursive: true });
  writeFileSync(checkedFile, JSON.stringify([...checked]));
});

test('every regular expression is built from constants, or exempt with a reason', () => {
  const unknown = patterns.filter(({ source }) => source === undefined);
  const places = unknown.filter((pattern) => reasonOf(pattern) === undefined);
  assert.deepEqual(
    places.map(({ place }) => place),
    [],
    'make it of constants, so that it can be checked',
  );
  assert.deepEqual(unknown.map(reasonOf).sort(), Object.keys(unchecked).sort());
});
