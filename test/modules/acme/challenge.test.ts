import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { AcmeFolder } from '../../../src/modules/acme/folder.ts';
import { readTestConfig } from '../../harness.ts';
import { startTlsSite } from '../../core/server/tls/tls-rig.ts';

const token = 'evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ';
const path = `/.well-known/acme-challenge/${token}`;

/** Starts a site whose ACME server does not exist; returns it with its ACME folder. */
async function startManaged(t: TestContext) {
  const site = await startTlsSite(t, {
    certificates: { tls: ['fallback.example'] },
    tls: 'acme_directory = https://127.0.0.1:1/dir\nacme_allow_private = 127.0.0.1\n[tls.shop.example]\nacme = yes\n',
    files: { 'site/.well-known/acme-challenge/other': 'of another client' },
    ini: '[disk.site]\nroot = site\ndotfiles = allow\n',
  });
  const { server, tls } = await readTestConfig(site.iniFile);
  // Its only attempt has ended and no longer removes challenges.
  await site.untilLogged(/No certificate for shop\.example: .*127\.0\.0\.1:1.* Retrying/);
  return { site, folder: new AcmeFolder(server.data, tls.acme) };
}

suite('a challenge', () => {
  test('is answered over HTTP and over TLS, as long as it is open', async (t) => {
    const { site, folder } = await startManaged(t);
    const clear = () => fetch(`${site.url}${path}`, { redirect: 'manual' });
    assert.equal((await clear()).status, 404);
    await folder.saveChallenge(token, `${token}.thumbprint`);
    const reply = await clear();
    assert.deepEqual([reply.status, await reply.text()], [200, `${token}.thumbprint`]);
    const asShop = { headers: { host: 'shop.example' }, servername: 'fallback.example' };
    const sealed = await site.ask('https://fallback.example/', { path, ...asShop });
    assert.equal(sealed.body, `${token}.thumbprint`);
    await folder.removeChallenges();
    assert.equal((await clear()).status, 404);
  });

  test('of another ACME client that serves files from disk is not touched', async (t) => {
    const { site } = await startManaged(t);
    const reply = await fetch(`${site.url}/.well-known/acme-challenge/other`);
    assert.equal(await reply.text(), 'of another client');
  });

  test('over acme-tls/1 gets its own certificate, and no other connection gets that', async (t) => {
    const { site, folder } = await startManaged(t);
    const insecure = { servername: 'shop.example', rejectUnauthorized: false };
    const challenge = { ...insecure, ALPNProtocols: ['acme-tls/1'] };
    await assert.rejects(site.shake(challenge));
    await folder.saveChallenge('shop.example', await site.authority.issue(['answer.example']));
    const answered = await site.shake(challenge);
    assert.equal(answered.alpnProtocol, 'acme-tls/1');
    assert.equal(answered.getPeerCertificate().subject.CN, 'answer.example');
    for (const ALPNProtocols of [['h2'], ['http/1.1'], undefined]) {
      const other = await site.shake({ ...insecure, ...(ALPNProtocols && { ALPNProtocols }) });
      assert.equal(other.getPeerCertificate().subject.CN, 'fallback.example');
      assert.equal(other.alpnProtocol, ALPNProtocols?.[0] ?? false);
    }
    await assert.rejects(site.shake({ ...challenge, servername: 'other.example' }));
    await assert.rejects(site.shake({ ...insecure, ALPNProtocols: ['spdy/3'] }));
  });
});
