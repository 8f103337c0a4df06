import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { startSite } from '../../../harness.ts';

const tree = 'svc1.userinterface.tree';
const hostile = `<img src=x onerror=alert(1)> & "q" 100%25.txt`;
const shop = 'http://shop.example';
const many = 10_000;

interface Node {
  readonly name: string;
  readonly path: string;
  readonly folder: boolean;
  readonly mount?: string;
  readonly answers?: string;
  readonly rules: readonly { readonly source?: string; readonly shadowed?: string }[];
}

interface Answer {
  readonly rows: readonly Node[];
  readonly next: string | null;
  readonly hidden_mounts?: readonly string[];
  readonly truncated?: boolean;
}

const started = (async () => {
  const site = await startSite(
    { after },
    {
      ini: [
        '[disk.site]\nroot = site',
        '[disk.open]\nroot = open\npath = /open/\nlisting = yes',
        `[disk.shop]\nroot = shop\norigin = ${shop}\npath = /shop/`,
      ].join('\n'),
      files: {
        'site/index.html': 'front',
        'site/both': 'file',
        'site/both.d': 'file',
        'site/.secret': 'hidden',
        'site/.git/config': 'hidden',
        'site/.well-known/security.txt': 'x',
        [`site/${hostile}`]: 'hostile',
        'site/dir/a.txt': 'a',
        'site/dir/b/c.txt': 'c',
        'site/star/x*': 'x',
        'outside/private.txt': 'private',
        'open/one.txt': '1',
        'open/with-index/index.html': 'i',
        'open/with-index/unlisted.txt': 'u',
        'shop/lamp.txt': 'l',
      },
      rules: [
        { path: '/both', kind: 'content', content: 'rule' },
        { path: '/both.*', kind: 'content', content: 'rule' },
        { path: '/only', kind: 'content', content: 'rule' },
        { path: '/dir/r', kind: 'content', content: 'rule' },
        { path: '/far/*', kind: 'content.fetch', enginedata: { source: 'http://a.example/*' } },
        { path: '/star/x*', kind: 'content', content: 'rule' },
      ],
    },
  );
  const folder = join(site.folder, 'site');
  await symlink('../outside', join(folder, 'out'));
  await symlink('../outside/private.txt', join(folder, 'out.txt'));
  await symlink('dir/a.txt', join(folder, 'in.txt'));
  await symlink('dir', join(folder, 'in'));
  await mkdir(join(folder, 'many'));
  const names = Array.from({ length: many - 1 }, (_, at) => `f${at}`);
  await Promise.all(names.map((name) => writeFile(join(folder, 'many', name), '')));
  await mkdir(join(folder, 'many', 'last'));
  return site;
})();

async function read(v: object, apikey?: string): Promise<Answer> {
  const site = await started;
  const by = apikey === undefined ? {} : { apikey };
  const { data, error } = await site.call(tree, { origin: '*', ...v }, by);
  assert.equal(error, undefined);
  return data;
}

let reader: Promise<string> | undefined;

/** A key that may only read. */
async function readingKey(): Promise<string> {
  reader ??= (await started)
    .call('svc1.key.insert', { name: 'reader', scopes: ['read'] })
    .then(({ data }) => data.key as string);
  return reader;
}

const namesOf = ({ rows }: Answer) => rows.map(({ name }) => name);

suite('files in userinterface.tree', () => {
  test('it has the names that the mount serves, each with what answers it', async () => {
    const answer = await read({ path: '/' });
    const seen = answer.rows.map(({ name, mount, answers, rules }) => [
      ...[name, mount, answers, rules.length],
    ]);
    assert.deepEqual(seen, [
      ['', 'site', 'file', 0],
      ['.well-known/', 'site', undefined, 0],
      [hostile, 'site', 'file', 0],
      ['both', 'site', 'file', 1],
      ['both.*', undefined, 'rule', 1],
      ['both.d', 'site', 'file', 0],
      ['dir/', 'site', undefined, 0],
      ['far/', undefined, undefined, 0],
      ['in.txt', 'site', 'file', 0],
      ['in/', 'site', undefined, 0],
      ['index.html', 'site', 'file', 0],
      ['many/', 'site', undefined, 0],
      ['only', undefined, 'rule', 1],
      ['open/', 'open', undefined, 0],
      ['star/', 'site', undefined, 0],
    ]);
    assert.ok(!JSON.stringify(answer).includes((await started).folder), 'no path of the disk');
  });

  test('every file of it answers under its path, and what it leaves out does not', async () => {
    const { url } = await started;
    const statusOf = async (path: string): Promise<number> => {
      const reply = await fetch(`${url}${path.split('/').map(encodeURIComponent).join('/')}`);
      await reply.arrayBuffer();
      return reply.status;
    };
    const { rows } = await read({ path: '/' });
    for (const { path } of rows.filter(({ answers }) => answers === 'file')) {
      assert.equal(await statusOf(path), 200, path);
    }
    for (const path of ['/.secret', '/.git/config', '/out.txt', '/out/private.txt']) {
      assert.equal(await statusOf(path), 404, path);
    }
  });

  test('a page rule that a file hides is one node with it', async () => {
    const { rows } = await read({ path: '/', shadows: true });
    const both = rows.find(({ name }) => name === 'both');
    assert.match(both?.rules[0]?.shadowed ?? '', /A file of \[disk\.site\]/);
    const star = await read({ path: '/star/' });
    assert.deepEqual(
      star.rows.map(({ name, answers }) => [name, answers]),
      [
        ['x*', 'rule'],
        ['x*', 'file'],
      ],
    );
  });

  test('a content.fetch rule says where it gets everything below it', async () => {
    const { rows } = await read({ path: '/far/' });
    assert.deepEqual(
      rows.map(({ name, answers, rules }) => [name, answers, rules[0]?.source]),
      [['*', 'fetched', 'http://a.example/*']],
    );
  });

  test('mounts appear with their path and origin only', async () => {
    assert.deepEqual(namesOf(await read({ path: '' })), ['/']);
    assert.deepEqual(namesOf(await read({ path: '/', origin: shop })), ['shop/']);
    assert.deepEqual(namesOf(await read({ path: '/shop/', origin: shop })), ['lamp.txt']);
    assert.deepEqual(namesOf(await read({ path: '/shop/' })), []);
    const { data } = await (await started).call(tree, {});
    assert.deepEqual(data.origins, ['*', shop]);
  });

  test('a folder with 10,000 entries comes in pages, also among page rules', async () => {
    const seen: string[] = [];
    let next: string | null | undefined;
    do {
      const page = await read({ path: '/many/', limit: 999, ...(next && { after: next }) });
      assert.ok(page.rows.length <= 999);
      assert.equal(page.truncated, undefined);
      seen.push(...namesOf(page));
      next = page.next;
    } while (next !== null);
    assert.equal(seen.length, many);
    assert.deepEqual(seen, seen.toSorted());
    assert.ok(seen.includes('last/'));
    const root: string[] = [];
    do {
      const page = await read({ path: '/', limit: 1, ...(next !== null && { after: next }) });
      root.push(...namesOf(page));
      next = page.next;
    } while (next !== null);
    assert.deepEqual(root, namesOf(await read({ path: '/' })));
  });

  test('without the scope admin, it names no file that no visitor can list', async () => {
    const key = await readingKey();
    const root = await read({ path: '/' }, key);
    assert.deepEqual(namesOf(root), ['both', 'both.*', 'dir/', 'far/', 'only', 'open/', 'star/']);
    assert.deepEqual(root.hidden_mounts, ['site']);
    assert.ok(root.rows.every(({ mount }) => mount === undefined || mount === 'open'));
    const open = await read({ path: '/open/' }, key);
    assert.deepEqual(namesOf(open), ['', 'one.txt', 'with-index/']);
    assert.equal(open.hidden_mounts, undefined);
    // A folder with an index file has no listing.
    const unlisted = await read({ path: '/open/with-index/' }, key);
    assert.deepEqual([namesOf(unlisted), unlisted.hidden_mounts], [[], ['open']]);
  });

  test('a path that leads out of the mount has no files', async () => {
    for (const path of ['/dir/../', '/../', '/out/', '/.git/', '//', '/dir//', '/both/', '/\0/']) {
      assert.deepEqual(namesOf(await read({ path })), [], path);
    }
  });
});
