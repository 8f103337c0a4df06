import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { isServableName, resolveMountPath } from '../../../src/modules/files/mount-path.ts';
import { startSite } from '../../harness.ts';
import { pathOf } from '../../request-path.ts';
import { ask } from './disk-rig.ts';

suite('the path of a file below a mount', () => {
  const cases: readonly (readonly [
    mount: string,
    path: string,
    place: string | undefined,
    slash?: boolean,
  ])[] = [
    ['/', '/', '', true],
    ['/', '/a', 'a', false],
    ['/', '/a/', 'a', true],
    ['/', '/a/b.txt', 'a/b.txt', false],
    ['/docs/', '/docs/', '', true],
    ['/docs/', '/docs', '', false],
    ['/docs/', '/docs/a/', 'a', true],
    ['/', '/a//b', undefined],
    ['/', '/a//', undefined],
    ['/', '/.env', undefined],
    ['/', '/a/.git/config', undefined],
    ['/', '/.well-known/security.txt', '.well-known/security.txt', false],
    ['/', '/.well-known', '.well-known', false],
    ['/', '/.well-known/.hidden', undefined],
    ['/', '/a/.well-known/x', undefined],
    ['/docs/', '/docs/.well-known/x', undefined],
    ['/', '/.well-knownx', undefined],
    ['/', '/...', undefined],
    ['/', '/a..b', 'a..b', false],
    ['/', '/a\\b', undefined],
    ['/', '/a\0b', undefined],
    ['/', '/ ', ' ', false],
  ];
  for (const [path, requestPath, relativePath, trailingSlash] of cases) {
    test(`${JSON.stringify(requestPath)} below ${path} is ${relativePath === undefined ? 'none' : JSON.stringify(relativePath)}`, () => {
      assert.deepEqual(
        resolveMountPath({ path, dotfiles: 'deny' }, pathOf(requestPath).path),
        relativePath === undefined ? undefined : { relativePath, trailingSlash },
      );
    });
  }

  test('may be hidden if the mount allows it, but never leads upwards', () => {
    const allowed = { path: '/', dotfiles: 'allow' } as const;
    assert.deepEqual(resolveMountPath(allowed, pathOf('/.git/config').path), {
      relativePath: '.git/config',
      trailingSlash: false,
    });
    for (const path of ['/..', '/../x', '/a/../b', '/.', '/a/./b', '/a/..']) {
      assert.equal(resolveMountPath(allowed, pathOf(path).path), undefined, path);
    }
  });
});

test('a name of up to 255 bytes is served', () => {
  const cases: readonly (readonly [string, boolean])[] = [
    ['a'.repeat(255), true],
    ['a'.repeat(256), false],
    [`${'é'.repeat(127)}a`, true],
    ['é'.repeat(128), false],
    ['日'.repeat(85), true],
    [`${'日'.repeat(85)}a`, false],
    ['', false],
  ];
  for (const [name, servable] of cases) {
    assert.equal(isServableName(name, 'deny'), servable, `${name.slice(0, 3)} ${name.length}`);
  }
});

test('files with the longest possible names are served, longer names are a 404', async (t) => {
  const names = [`${'a'.repeat(251)}.txt`, `${'é'.repeat(125)}a.txt`, '日'.repeat(85)];
  const site = await startSite(t, {
    ini: '[disk.site]\nroot = site\n',
    files: Object.fromEntries(names.map((name) => [`site/${name}`, name])),
  });
  for (const name of names) {
    assert.equal((await ask(site.url, `/${encodeURIComponent(name)}`)).text, name);
    assert.equal((await ask(site.url, `/${encodeURIComponent(`${name}x`)}`)).status, 404);
  }
});

test('dotfiles are served if the mount allows them, /.well-known always', async (t) => {
  const site = await startSite(t, {
    ini: `
[disk.deny]
root = site
[disk.allow]
path = /all/
root = site
dotfiles = allow
`,
    files: {
      'site/.env': 'hidden',
      'site/.git/config': 'hidden',
      'site/.index/index.html': 'hidden',
      'site/.well-known/acme': 'known',
      'site/.well-known/.secret': 'hidden',
      'site/a/.well-known/acme': 'hidden',
    },
  });
  const cases: readonly (readonly [path: string, denied: number])[] = [
    ['.env', 404],
    ['.git/config', 404],
    ['.index/', 404],
    ['.index', 404],
    ['.well-known/acme', 200],
    ['.well-known/.secret', 404],
    ['a/.well-known/acme', 404],
  ];
  for (const [path, denied] of cases) {
    assert.equal((await ask(site.url, `/${path}`)).status, denied, path);
    const allowed = await ask(site.url, `/all/${path}`);
    assert.equal(allowed.status, path === '.index' ? 301 : 200, path);
  }
});
