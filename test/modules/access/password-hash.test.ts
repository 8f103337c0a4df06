import assert from 'node:assert/strict';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import {
  hashPassword,
  parsePasswordFile,
  scryptAs,
} from '../../../src/modules/access/password-hash.ts';
import { basicCredentials } from '../../../src/modules/access/passwords.ts';
import { runHere } from '../../cli/here.ts';
import { temporaryFolder, writeFiles } from '../../folder.ts';
import { basic, bcryptLine, scryptLine } from './passwords.ts';

suite('a password file', () => {
  test('has a line for each user; broken lines name nobody, and are named', () => {
    const lines = [
      scryptLine('ann', 'a'),
      '# a comment',
      '',
      bcryptLine('bob', 'b'),
      'no colon',
      ':$2y$05$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZabcde',
      'md5:$apr1$x$y',
      'sha:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=',
      'plain:secret',
      `dear:${bcryptLine('x', 'x').slice(2).replace('$04$', '$31$')}`,
      `huge:${scryptLine('x', 'x').slice(2).replace('ln=10,r=1', 'ln=20,r=8')}`,
      `many:${scryptLine('x', 'x').slice(2).replace('p=1', 'p=99')}`,
      `rest:${scryptLine('x', 'x').slice(2)}$more`,
      scryptLine('twice', 'a'),
      scryptLine('twice', 'b'),
      scryptLine('twice', 'c'),
      scryptLine('Zo\u0308e', 'z'),
    ];
    const { hashes, problems } = parsePasswordFile(`\ufeff${lines.join('\r\n')}\r\n`);
    assert.deepEqual([...hashes.keys()], ['ann', 'bob', 'Zöe']);
    assert.deepEqual(
      problems.map((problem) => Number(/^line (\d+) /.exec(problem)?.[1])),
      [5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16],
    );
  });

  test('`waymark password` prints a line that is read', async () => {
    const { code, out, err } = await runHere(['password', 'ann'], { input: 'pass wörd\nmore\n' });
    assert.deepEqual([code, err], [0, '']);
    const hash = parsePasswordFile(out).hashes.get('ann');
    assert.equal(hash?.kind, 'scrypt');
    assert.deepEqual(await scryptAs('pass wörd', hash), hash.hash);
    assert.notDeepEqual(await scryptAs('pass word', hash), hash.hash);
    assert.notEqual(out, `ann:${await hashPassword('pass wörd')}\n`, 'each has its own salt');
    for (const [name, input, wanted] of [
      ['a:b', 'x\n', /a name has no colon/],
      ['#a', 'x\n', /does not begin with #/],
      [' a', 'x\n', /no space around it/],
      ['ann', '\n', /password is empty/],
      ['ann', 'a\u0007b\n', /no control character/],
      ['ann', `${'x'.repeat(2_000)}\n`, /at most 1024 bytes/],
    ] as const) {
      const refused = await runHere(['password', name], { input });
      assert.notEqual(refused.code, 0);
      assert.match(refused.err, wanted);
      assert.equal(refused.out, '');
    }
  });
});

test('`waymark check` names the broken lines of a password file', async (t) => {
  const folder = await temporaryFolder(t);
  const ini = '[server]\ndata = data\n[access.a]\npassword_file = users.txt\n';
  await writeFiles(folder, { 'server.ini': ini, 'users.txt': `${scryptLine('ann', 'a')}\nbob` });
  const { code, err } = await runHere(['check', '--config', join(folder, 'server.ini')]);
  assert.equal(code, 0);
  assert.match(err, /users\.txt: line 2 is not a name, a colon and a hash of scrypt or bcrypt/);
});

suite('Authorization: Basic', () => {
  test('gives name and password, and nothing for anything else', () => {
    assert.deepEqual(basicCredentials(basic('ann', 'a:b ü')), { name: 'ann', password: 'a:b ü' });
    assert.deepEqual(basicCredentials(basic('', '')), { name: '', password: '' });
    for (const value of [
      ...[undefined, '', 'Basic', 'Basic !', 'Bearer YTpi', 'Basic YTpi, Basic YTpi'],
      ...[
        `Basic ${Buffer.from('no colon').toString('base64')}`,
        basic('a\nb', 'c'),
        basic('a', '\0'),
      ],
      ...[
        `Basic ${Buffer.from([0x61, 0x3a, 0xff]).toString('base64')}`,
        basic('a'.repeat(300), 'b'),
      ],
      basic('a', 'x'.repeat(1_100)),
    ]) {
      assert.equal(basicCredentials(value), undefined, String(value));
    }
    fc.assert(
      fc.property(fc.string(), (text) => {
        basicCredentials(text);
        basicCredentials(`Basic ${text}`);
        return true;
      }),
    );
  });
});
