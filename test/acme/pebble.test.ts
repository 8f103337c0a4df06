import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir, stat } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { suite, test, type TestContext } from 'node:test';
import { connect, type PeerCertificate } from 'node:tls';
import { startSite, type Answer, temporaryFolder, writeFiles } from '../harness.ts';
import { startServed } from '../process.ts';
import { freePort, startPebble, withoutPebble } from './pebble.ts';

/** What a client that asks for a host is shown on a port. */
async function certificateOf(port: number, servername: string): Promise<PeerCertificate> {
  const socket = connect({ port, host: '127.0.0.1', servername, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const certificate = socket.getPeerCertificate();
  socket.destroy();
  return certificate;
}

/** What server.status says over TLS, whatever the certificate. */
async function statusOf(port: number, apikey: string): Promise<Answer> {
  const sent = request({
    port,
    host: '127.0.0.1',
    servername: 'shop.example',
    path: '/svc1/server/status',
    headers: { apikey, host: 'shop.example' },
    rejectUnauthorized: false,
    agent: false,
  }).end();
  const [message] = (await once(sent, 'response')) as [IncomingMessage];
  return (await json(message)) as Answer;
}

/** Starts a site on two ports that Pebble looks at, with certificates for some hosts. */
async function startManaged(
  t: TestContext,
  hosts: readonly string[],
  ways: readonly ('http' | 'https')[] = ['http', 'https'],
) {
  const [httpPort, tlsPort] = [await freePort(), await freePort()];
  const pebble = await startPebble(t, { httpPort, tlsPort });
  const ports = { http: httpPort, https: tlsPort };
  const site = await startSite(t, {
    listen: ways.map((way) => `listen[] = ${way}://127.0.0.1:${ports[way]}\n`).join(''),
    ini:
      `[tls]\nacme_directory = ${pebble.directory}\nacme_ca = pebble.pem\nacme_allow_private = 127.0.0.1\n` +
      'acme_email = admin@example.com\n' +
      hosts.map((host) => `[tls.${host}]\nacme = yes\n`).join(''),
    files: { 'pebble.pem': pebble.ca },
    rules: [{ path: '/a', kind: 'content', content: 'a' }],
  });
  return { site, pebble, tlsPort };
}

suite('certificates from an ACME server', { skip: withoutPebble }, () => {
  test('are got by http-01, for each host one, and kept for the owner alone', async (t) => {
    const { site, pebble, tlsPort } = await startManaged(t, ['shop.example', 'www.example']);
    await site.untilLogged(/\[tls\.shop\.example\] is in use/);
    await site.untilLogged(/\[tls\.www\.example\] is in use/);
    for (const host of ['shop.example', 'www.example']) {
      const { subjectaltname, issuer } = await certificateOf(tlsPort, host);
      assert.equal(subjectaltname, `DNS:${host}`);
      assert.match(String(issuer.CN), /Pebble Intermediate/);
    }
    assert.match(pebble.output(), /validate w\/ HTTP: http:\/\/www\.example/);
    const folder = join(site.folder, 'data/acme');
    for (const name of await readdir(folder, { recursive: true })) {
      const { mode } = await stat(join(folder, name));
      assert.equal((mode & 0o777).toString(8), mode & 0o040000 ? '700' : '600', name);
    }
    assert.deepEqual(await readdir(join(folder, 'challenges')), []);
    const reply = await fetch(`${site.url}/a`, {
      headers: { host: 'shop.example' },
      redirect: 'manual',
    });
    assert.equal(reply.status, 301, 'what comes in the clear is sent on to https');
  });

  test('are got by tls-alpn-01 where nothing is answered in the clear', async (t) => {
    const { site, tlsPort } = await startManaged(t, ['shop.example'], ['https']);
    await site.untilLogged(/\[tls\.shop\.example\] is in use/);
    const { subjectaltname } = await certificateOf(tlsPort, 'shop.example');
    assert.equal(subjectaltname, 'DNS:shop.example');
  });

  test('that are refused are named in the log and in server.status', async (t) => {
    const { site, tlsPort } = await startManaged(t, ['shop.example', 'blocked-domain.example']);
    await site.untilLogged(/No certificate for blocked-domain\.example: .+ Next try at 20/);
    assert.match(site.logged(), /blocked-domain\.example: .*(?:policy|block)/i);
    await site.untilLogged(/\[tls\.shop\.example\] is in use/);
    const { data } = await statusOf(tlsPort, site.adminKey);
    const [valid, failed] = data.certificates;
    assert.deepEqual([valid.names, valid.acme.state], [['shop.example'], 'valid']);
    const left = Date.parse(valid.valid_until) - Date.parse(valid.acme.next);
    assert.ok(left >= 29 * 86_400_000 && left <= 36 * 86_400_000, `renewed ${left} ms before`);
    assert.deepEqual([failed.names, failed.valid_until], [[], null]);
    assert.deepEqual([failed.acme.state, failed.acme.failures], ['failed', 1]);
  });

  test('are got by one of several workers, and used by all', async (t) => {
    const [httpPort, tlsPort] = [await freePort(), await freePort()];
    const pebble = await startPebble(t, { httpPort, tlsPort });
    const folder = await temporaryFolder(t);
    await writeFiles(folder, {
      'pebble.pem': pebble.ca,
      'server.ini':
        `[server]\nlisten[] = http://127.0.0.1:${httpPort}\nlisten[] = https://127.0.0.1:${tlsPort}\n` +
        `data = data\nworkers = 2\n[tls]\nacme_directory = ${pebble.directory}\n` +
        'acme_ca = pebble.pem\nacme_allow_private = 127.0.0.1\n[tls.shop.example]\nacme = yes\n',
    });
    const served = await startServed(t, join(folder, 'server.ini'));
    const isThere = () => served.out().includes('[tls.shop.example] is in use');
    while (!isThere()) await once(served.child.stdout ?? served.child, 'data');
    assert.equal(served.out().match(/is ordered from/g)?.length, 1);
    for (let asked = 0; asked < 8; asked += 1) {
      const { subjectaltname } = await certificateOf(tlsPort, 'shop.example');
      assert.equal(subjectaltname, 'DNS:shop.example');
    }
  });
});
