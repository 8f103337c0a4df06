import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const text = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** Scripts that npm runs by itself. */
const hooks = new Set(['prepare', 'prestart', 'prepack']);

test('CONTRIBUTING has a row for each script, and no other', () => {
  const { scripts } = JSON.parse(text('package.json')) as { scripts: Record<string, string> };
  const rows = text('CONTRIBUTING.md').matchAll(/^\| `npm (?:run )?([\w:-]+)/gm);
  const described = [...rows].flatMap(([, name]) => (name === undefined ? [] : [name]));
  const expected = Object.keys(scripts).filter((name) => !hooks.has(name));
  assert.deepEqual(described.sort(), expected.sort());
});
