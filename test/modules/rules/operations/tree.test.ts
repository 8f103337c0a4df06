import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { startSite } from '../../../harness.ts';

const page = (path: string, more: object = {}) => ({
  path,
  kind: 'content',
  content: 'x',
  ...more,
});
const other = 'http://other.example';
const started = startSite(
  { after },
  {
    ini: '[disk.site]\nroot = site\n',
    files: { 'site/a0': 'a file' },
    rules: [
      ...['/a', '/a/', '/a/b', '/a/b/c', '/a/c/d', '/a0', '/z/é/y'].map((path) => page(path)),
      page('/a/*'),
      page('/a/b', { lang: 'de' }),
      { path: 'summer', kind: 'resolve', enginedata: { target: '/a' } },
      page('/only', { origin: other }),
      page('/twice/x', { origin: 'http://twice.example', rve: 2 }),
      page('/twice/x', { origin: 'http://twice.example', rve: 1 }),
      page(`/long/${'x'.repeat(1990)}`),
    ],
  },
);

interface Node {
  readonly name: string;
  readonly path: string;
  readonly folder: boolean;
  readonly rules: readonly { readonly kind: string; readonly shadowed?: string }[];
}

async function tree(v: object): Promise<{ rows: Node[]; origins?: string[]; next: string | null }> {
  const { data, error } = await (await started).call('svc1.userinterface.tree', v);
  assert.equal(error, undefined);
  return data;
}

suite('userinterface.tree', () => {
  test('lists the origins of rules without one', async () => {
    const { origins } = await tree({});
    assert.deepEqual(origins, ['*', other, 'http://twice.example']);
    assert.deepEqual((await tree({ limit: 1 })).origins, ['*']);
    assert.deepEqual((await tree({ limit: 1, after: '*' })).origins, [other]);
  });

  test('lists the names directly below a path, whatever is below them', async () => {
    const names = async (path: string, origin = '*') =>
      (await tree({ origin, path })).rows.map(({ name, rules }) => [name, rules.length]);
    assert.deepEqual(await names(''), [
      ['/', 0],
      ['summer', 1],
    ]);
    assert.deepEqual(await names('/'), [
      ['a', 1],
      ['a/', 0],
      ['a0', 1],
      ['z/', 0],
    ]);
    assert.deepEqual(await names('/a/'), [
      ['', 1],
      ['*', 1],
      ['b', 2],
      ['b/', 0],
      ['c/', 0],
    ]);
    assert.deepEqual(await names('/z/'), [['é/', 0]]);
    assert.deepEqual(await names('/', other), [['only', 1]]);
    assert.deepEqual(await names('/none/'), []);
  });

  test('goes on after the last name of a page, also after a wildcard and a folder', async () => {
    const seen: string[] = [];
    let next: string | null | undefined;
    do {
      const found = await tree({ origin: '*', path: '/a/', limit: 1, after: next });
      seen.push(...found.rows.map(({ path }) => path));
      next = found.next;
    } while (next !== null);
    assert.deepEqual([...new Set(seen)], ['/a/', '/a/*', '/a/b', '/a/b/', '/a/c/']);
  });

  test('says what hides a rule from every visitor, if it is asked to', async () => {
    const shadowed = async (v: object) =>
      (await tree(v)).rows.flatMap(({ rules }) => rules.map((rule) => rule.shadowed));
    const [a, hidden = ''] = await shadowed({ origin: '*', path: '/', shadows: true });
    assert.equal(a, undefined);
    assert.match(hidden, /^A file of \[disk\.site\] has this path and hides the page rule/);
    assert.deepEqual(await shadowed({ origin: '*', path: '/' }), [undefined, undefined]);
    const twice = { origin: 'http://twice.example', path: '/twice/', shadows: true };
    const found = (await shadowed(twice)).filter((one) => one !== undefined);
    assert.equal(found.length, 1);
    assert.match(found[0] ?? '', /^The page rule .* at the same path hides this one/);
  });
});
