import assert from 'node:assert/strict';
import { access, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { AcmeFolder } from '../../../src/modules/acme/folder.ts';
import { noDns, notOnDemand } from './no-dns.ts';
import { temporaryFolder } from '../../folder.ts';

const acme = {
  hosts: ['shop.example'],
  directory: 'https://ca.example/dir',
  eabKid: undefined,
  eabKeyFile: undefined,
  profile: undefined,
  email: undefined,
  caFile: undefined,
  allowPrivate: [],
  ...noDns,
  ...notOnDemand,
};
const token = 'evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ';

suite('the ACME folder', () => {
  test('is readable by its owner only, even if it had other permissions before', async (t) => {
    const data = await temporaryFolder(t);
    await mkdir(join(data, 'acme'), { mode: 0o755 });
    const folder = new AcmeFolder(data, acme);
    await folder.prepare();
    await folder.accountKey();
    await folder.saveCertificate('shop.example', { cert: 'c', key: 'k' });
    await folder.saveChallenge(token, 'answer');
    await folder.saveChallenge('shop.example', { cert: 'c', key: 'k' });
    for (const name of ['', ...(await readdir(join(data, 'acme'), { recursive: true }))]) {
      const found = await stat(join(data, 'acme', name));
      assert.equal((found.mode & 0o777).toString(8), found.isDirectory() ? '700' : '600', name);
    }
  });

  test('keeps the account key, and separate files for each ACME server', async (t) => {
    const data = await temporaryFolder(t);
    const folder = new AcmeFolder(data, acme);
    const other = new AcmeFolder(data, { ...acme, directory: 'https://ca.example/staging' });
    await folder.prepare();
    await other.prepare();
    const key = await folder.accountKey();
    assert.equal(await new AcmeFolder(data, acme).accountKey(), key);
    assert.notEqual(await other.accountKey(), key);
    await folder.saveCertificate('shop.example', { cert: 'c', key: 'k' });
    await access(folder.certificates[0]?.certFile ?? '');
    await assert.rejects(access(other.certificates[0]?.certFile ?? ''));
  });

  test('removes the files that an unfinished order has left behind', async (t) => {
    const data = await temporaryFolder(t);
    const folder = new AcmeFolder(data, acme);
    await folder.prepare();
    await folder.saveChallenge(token, 'answer');
    const [{ certFile } = { certFile: '' }] = folder.certificates;
    await writeFile(`${certFile}.draft`, 'half');
    await new AcmeFolder(data, acme).prepare();
    assert.equal(await folder.keyAuthorization(token), undefined);
    await assert.rejects(access(`${certFile}.draft`));
  });

  test('has no state of a host whose file is damaged', async (t) => {
    const data = await temporaryFolder(t);
    const folder = new AcmeFolder(data, acme);
    await folder.prepare();
    assert.equal(await folder.state('shop.example'), undefined);
    const [{ certFile } = { certFile: '' }] = folder.certificates;
    for (const text of ['', '{', 'null', '{"since": 1}', '[]']) {
      await writeFile(certFile.replace(/pem$/, 'json'), text);
      assert.equal(await folder.state('shop.example'), undefined, text);
    }
  });

  test('reads no other files as the responses to challenges', async (t) => {
    const data = await temporaryFolder(t);
    const folder = new AcmeFolder(data, acme);
    await folder.prepare();
    await folder.saveChallenge(token, 'answer');
    await folder.saveChallenge('shop.example', { cert: 'c', key: 'k' });
    assert.equal(await folder.keyAuthorization(token), 'answer');
    const odd = [
      '',
      '..',
      '.',
      'shop.example.pem',
      `../challenges/${token}`,
      `${token}\0`,
      'x'.repeat(5_000),
    ];
    for (const name of odd) assert.equal(await folder.keyAuthorization(name), undefined, name);
    assert.deepEqual(await folder.challengeCertificate('shop.example'), {
      cert: 'k\nc',
      key: 'k\nc',
    });
    for (const name of [...odd, '../shop.example', 'SHOP.example/..']) {
      assert.equal(await folder.challengeCertificate(name), undefined, name);
    }
    await assert.rejects(folder.saveChallenge('../../x', 'answer'), TypeError);
    await folder.removeChallenges();
    assert.equal(await folder.keyAuthorization(token), undefined);
    assert.equal(await folder.challengeCertificate('shop.example'), undefined);
  });
});
