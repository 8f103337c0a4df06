import assert from 'node:assert/strict';
import { once } from 'node:events';
import { rename, writeFile } from 'node:fs/promises';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { startTlsSite, type TlsSite } from './tls-rig.ts';

/** Replaces a file atomically, as ACME clients do. */
async function replace(site: TlsSite, name: string, content: string): Promise<void> {
  const file = join(site.folder, 'tls', name);
  await writeFile(`${file}.new`, content);
  await rename(`${file}.new`, file);
}

/** Returns the common name of the certificate that a client gets. */
async function nameFor(site: TlsSite, servername?: string): Promise<string | undefined> {
  const socket = await site.shake({
    ...(servername !== undefined && { servername }),
    checkServerIdentity: () => undefined,
  });
  const { CN } = socket.getPeerCertificate().subject;
  return typeof CN === 'string' ? CN : undefined;
}

async function problems(site: TlsSite): Promise<readonly unknown[]> {
  const { data } = await site.call('svc1.server.status', {});
  return data.certificates.map(({ problem }: { problem: unknown }) => problem);
}

const certificates = { tls: ['old.example'], 'tls.www.example': ['www.example'] };

suite('a replaced certificate', () => {
  test('is used from the next handshake on; open connections go on', async (t) => {
    const site = await startTlsSite(t, { certificates });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => {
      agent.destroy();
    });
    const options = { agent, servername: 'old.example' };
    assert.equal((await site.ask('https://old.example/', options)).status, 404);
    const next = await site.authority.issue(['new.example']);
    await replace(site, 'tls.pem', next.cert);
    await replace(site, 'tls.key', next.key);
    await site.untilLogged(/\[tls\] was read again/);
    assert.equal(await nameFor(site), 'new.example');
    assert.equal(await nameFor(site, 'elsewhere.example'), 'new.example');
    assert.equal(await nameFor(site, 'www.example'), 'www.example');
    const [socket] = Object.values(agent.freeSockets).flat();
    assert.ok(socket !== undefined && !socket.destroyed);
    assert.equal((await site.ask('https://old.example/', options)).status, 404);
  });

  test('stays in use while the new files are no pair; the log says why', async (t) => {
    const site = await startTlsSite(t, { certificates, tls: 'http_redirect = no' });
    const next = await site.authority.issue(['www.example', 'next.example']);
    await replace(site, 'tls.www.example.pem', next.cert);
    await site.untilLogged(/stays in use: .*tls\.www\.example\.key is not the key of the first/);
    assert.deepEqual(await problems(site), [
      null,
      '`key` is not the key of the first certificate in `cert`',
    ]);
    assert.equal(await nameFor(site, 'www.example'), 'www.example');
    await replace(site, 'tls.www.example.pem', 'nonsense');
    await site.untilLogged(/tls\.www\.example\.pem does not contain a PEM certificate/);
    await replace(site, 'tls.www.example.pem', next.cert);
    await replace(site, 'tls.www.example.key', next.key);
    await site.untilLogged(/\[tls\.www\.example\] was read again: valid until 20/);
    assert.deepEqual(await problems(site), [null, null]);
    const socket = await site
      .shake({ servername: 'next.example', ca: site.authority.cert })
      .catch((error: unknown) => error);
    assert.ok(socket instanceof Error, 'the name of another section is none of this one');
  });

  test('is reported in the log before it expires', async (t) => {
    const site = await startTlsSite(t, { certificates });
    const soon = await site.authority.issue(['old.example'], { days: 0.1 });
    await replace(site, 'tls.key', soon.key);
    await replace(site, 'tls.pem', soon.cert);
    await site.untilLogged(/The certificate of \[tls\] expires on 20/);
    const over = await site.authority.issue(['old.example'], { days: -0.5 });
    await replace(site, 'tls.key', over.key);
    await replace(site, 'tls.pem', over.cert);
    await site.untilLogged(/The certificate of \[tls\] expired on 20/);
    const wrong = await site.authority.issue(['elsewhere.example']);
    await replace(site, 'tls.www.example.key', wrong.key);
    await replace(site, 'tls.www.example.pem', wrong.cert);
    await site.untilLogged(/does not cover www\.example: browsers reject it/);
  });

  test('does not keep the process running', async (t) => {
    const site = await startTlsSite(t, { certificates });
    const socket = await site.shake({ servername: 'old.example' });
    const closed = once(socket, 'close');
    assert.deepEqual(await site.waymark.stop(50), { cut: 0 });
    await closed;
  });
});
