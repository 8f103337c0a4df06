import assert from 'node:assert/strict';
import { createSecretKey, generateKeyPairSync } from 'node:crypto';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import type { Keys } from '../../../src/core/config/ini-key.ts';
import { startSite } from '../../harness.ts';
import { scryptLine } from '../../modules/access/passwords.ts';
import { makeFolder, readIni } from './folder.ts';
import { sections } from '../../ini.ts';

/** Keys of files and folders that hold nothing secret. */
const open: ReadonlySet<string> = new Set([
  ...['tls acme_ca', 'tls cert', 'tls.<host> cert', 'cluster ca', 'cluster cert'],
  ...['disk.<name> root', 'table.<name> schema', 'geo database', 'redirect.<name> file'],
  ...['event.<name> schema', 'access.<name> deny_file', 'access.<name> client_certificate'],
]);

const pathKeys = Object.entries(sections).flatMap(([kind, keys]) =>
  Object.entries<Keys[string]>(keys).flatMap(([name, { isPath, holds }]) => {
    return isPath === true ? [{ kind, name, holds, title: `${kind} ${name}` }] : [];
  }),
);

/** The problems of an ini text in the folder `conf`, beside a folder `held` with some files. */
async function problemsOf(
  t: Parameters<typeof makeFolder>[0],
  ini: string,
  more: Readonly<Record<string, string>> = {},
): Promise<readonly string[]> {
  const own = { 'conf/server.ini': ini, 'held/x': '', 'conf/sites/a.ini': '; none\n' };
  const files = { ...own, ...more };
  const folder = await makeFolder(t, files);
  const result = await readIni(join(folder, 'conf/server.ini'));
  return result.ok ? [] : result.problems.map(({ message }) => message);
}

suite('what a mount would serve', () => {
  test('each key of a file says whether that may be served', () => {
    const silent = pathKeys.filter(({ holds, title }) => (holds === undefined) !== open.has(title));
    assert.deepEqual(silent, []);
  });

  for (const { kind, name, holds, title } of pathKeys) {
    if (holds === undefined) continue;
    test(`is refused if it contains the file of ${title}`, async (t) => {
      const section = kind.replace(/<\w+>/, 'a');
      const isServer = kind === 'server';
      const lines = [
        `[server]\n${name === 'data' ? '' : 'data = ../data\n'}`,
        ...[isServer ? '' : `[${section}]\n`, `${name} = ../held/x\n`],
        '[disk.site]\nroot = ../held\n',
      ];
      const found = await problemsOf(t, lines.join(''));
      const message = `\`root\` = \`../held\` contains ${holds}: serve a folder without it`;
      assert.ok(found.includes(message), found.join('\n'));
    });
  }

  test('may be the keys of tokens that are public', async (t) => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const secret = createSecretKey('x', 'utf8');
    for (const [keys, isRefused] of [
      [[publicKey], false],
      [[publicKey, privateKey], true],
      [[secret], true],
    ] as const) {
      const set = JSON.stringify({ keys: keys.map((key) => key.export({ format: 'jwk' })) });
      const ini = '[server]\ndata = ../data\n[auth]\njwt_jwks = ../held/keys.json\n';
      const files = { 'held/keys.json': set };
      const found = await problemsOf(t, `${ini}[disk.site]\nroot = ../held\n`, files);
      const message = '`root` = `../held` contains the keys of tokens: serve a folder without it';
      assert.deepEqual(found, isRefused ? [message] : []);
    }
  });

  test('is refused if it contains the ini file, or one that that includes', async (t) => {
    const server = '[server]\ndata = ../data\ninclude = sites/*.ini\n';
    for (const [root, isRefused] of [
      ['.', true],
      ['sites', true],
      ['../held', false],
    ] as const) {
      const found = await problemsOf(t, `${server}[disk.site]\nroot = ${root}\n`);
      const message = `\`root\` = \`${root}\` contains the ini file: serve a folder without it`;
      assert.deepEqual(found, isRefused ? [message] : []);
    }
  });

  test('has no private file, wherever a symbolic link leads', async (t) => {
    const ini =
      '[disk.site]\nroot = site\nsymlinks = follow\ndotfiles = allow\nlisting = yes\n' +
      '[access.a]\npath = /closed/*\npassword_file = keys/users.txt\n';
    const files = {
      'keys/users.txt': scryptLine('ann', 'secret'),
      'keys/open.txt': 'open',
      'site/index.html': 'hello',
    };
    const site = await startSite(t, { ini, files });
    for (const [path, to] of [
      ['keys', 'keys'],
      ['all', '.'],
      ['users.txt', 'keys/users.txt'],
      ['server.ini', site.iniFile],
    ] as const) {
      await symlink(
        join(to.startsWith('/') ? '' : site.folder, to),
        join(site.folder, 'site', path),
      );
    }
    for (const [path, status] of [
      ...['/keys/users.txt', '/users.txt', '/server.ini', '/all/keys/users.txt'].map((one) => {
        return [one, 404] as const;
      }),
      ...['/all/data/data.mdb', '/all/data/', '/all/data'].map((one) => [one, 404] as const),
      ['/keys/open.txt', 200],
      ['/all/keys/open.txt', 200],
    ] as const) {
      assert.equal((await fetch(site.url + path)).status, status, path);
    }
  });
});
