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
  const named = [...rows].flatMap(([, name]) => (name === undefined ? [] : [name]));
  const described = [...new Set(named)];
  const expected = Object.keys(scripts).filter((name) => !hooks.has(name));
  assert.deepEqual(described.sort(), expected.sort());
});

test('README shows near its top how to start and how to test a clone', () => {
  const readme = text('README.md');
  const top = readme.split('\n').slice(0, 30);
  const { scripts } = JSON.parse(text('package.json')) as { scripts: Record<string, string> };
  for (const name of ['start', 'test']) {
    assert.ok(top.some((line) => line.startsWith(`npm ci && npm ${name} `)));
    assert.ok(scripts[name] !== undefined);
  }
  assert.match(readme, /npx waymark serve \.\/my-folder/);
});
