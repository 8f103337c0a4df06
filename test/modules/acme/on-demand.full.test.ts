import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { connect, type PeerCertificate } from 'node:tls';
import { serverFolder, startServed } from '../../process.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { acmeIni, certificateOf, freePorts, startBoth, startManagedSite } from './rig.ts';
import { startPebble, withoutPebble } from './pebble.ts';
import { startAcmeServer } from './server.ts';

/** A URL for `acme_on_demand` that allows names which begin with `yes`. */
async function startAsked(t: TestContext) {
  const asked: string[] = [];
  const state = { status: undefined as number | undefined };
  const { origin } = await httpSource(t, ({ url = '' }, response) => {
    const name = url.slice(url.indexOf('=') + 1);
    asked.push(name);
    response.writeHead(state.status ?? (name.startsWith('yes') ? 200 : 404)).end();
  });
  const ini = `acme_on_demand = ${origin}/ask\n`;
  return { ini, plain: `${ini}http_redirect = no\n`, asked, state };
}

/** The names of the certificate for a host; the message of a failed handshake. */
async function namesFor(port: number, host: string): Promise<string> {
  return certificateOf(port, host).then(
    ({ subjectaltname = '' }: PeerCertificate) => subjectaltname,
    (error: unknown) => (error as Error).message,
  );
}

/** Resolves when a handshake gets the certificate of a host: the machine may be slow. */
async function untilIssued(port: number, host: string): Promise<void> {
  while ((await namesFor(port, host)) !== `DNS:${host.toLowerCase()}`);
}

const noHosts = { hosts: [] };

// Each test has its own servers.
suite('a certificate on demand', { concurrency: 2 }, () => {
  test('is obtained in the first handshake for a name that the URL allows', async (t) => {
    const { plain, asked } = await startAsked(t);
    const { site, acme } = await startBoth(t, {}, { ...noHosts, tls: plain });
    const handshakes = Array.from({ length: 5 }, () => untilIssued(site.tlsPort, 'Yes.Example'));
    await Promise.all(handshakes);
    assert.deepEqual(asked, ['yes.example']);
    assert.equal(acme.orders.length, 1);
    const { data } = await site.call('svc1.server.status', {});
    const [shown] = data.certificates;
    assert.deepEqual(
      [shown.section, shown.names, shown.acme.state],
      ['tls: acme_on_demand yes.example', ['yes.example'], 'valid'],
    );
  });

  test('may come for any name, so http is redirected to https at the same name', async (t) => {
    const { ini, asked } = await startAsked(t);
    const { site } = await startBoth(t, {}, { ...noHosts, tls: ini });
    const head = 'GET /a HTTP/1.1\r\nHost: yes.example\r\nConnection: close\r\n\r\n';
    const answer = await site.raw(head);
    assert.ok(answer.includes(`\r\nLocation: https://yes.example:${site.tlsPort}/a\r\n`), answer);
    assert.deepEqual(asked, []);
  });

  test('is not obtained for names that are refused, invalid, or without an answer', async (t) => {
    const { plain, asked, state } = await startAsked(t);
    const { site, acme } = await startBoth(t, {}, { ...noHosts, tls: plain });
    for (const host of ['no.example', 'no.example', 'localhost', 'yes_.example']) {
      assert.match(await namesFor(site.tlsPort, host), /disconnected|alert|reset/i, host);
    }
    state.status = 503;
    assert.match(await namesFor(site.tlsPort, 'yes.example'), /disconnected|alert|reset/i);
    assert.deepEqual([asked, acme.orders], [['no.example', 'yes.example'], []]);
    assert.deepEqual((await site.call('svc1.server.status', {})).data.certificates, []);
  });

  test('comes later if the order takes longer than a handshake waits', async (t) => {
    const { ini } = await startAsked(t);
    const tls = `${ini}acme_on_demand_wait = 0s\n`;
    const { site } = await startBoth(t, {}, { ...noHosts, tls });
    assert.match(await namesFor(site.tlsPort, 'yes.example'), /disconnected|alert|reset/i);
    await site.untilLogged(/has issued a certificate for yes\.example/);
    await untilIssued(site.tlsPort, 'yes.example');
  });

  test('is one of few in a minute', async (t) => {
    const { ini } = await startAsked(t);
    const tls = `${ini}acme_on_demand_rate = 1\nacme_on_demand_wait = 3s\n`;
    const { site, acme } = await startBoth(t, {}, { ...noHosts, tls });
    await untilIssued(site.tlsPort, 'yes1.example');
    assert.match(await namesFor(site.tlsPort, 'yes2.example'), /disconnected|alert|reset/i);
    assert.equal(acme.orders.length, 1);
  });

  test('makes room for another one at the limit', async (t) => {
    const { ini } = await startAsked(t);
    const tls = `${ini}acme_on_demand_max = 2\n`;
    const { site } = await startBoth(t, {}, { ...noHosts, tls });
    for (const name of ['yes1', 'yes2', 'yes3']) {
      await untilIssued(site.tlsPort, `${name}.example`);
    }
    assert.match(site.logged(), /No more certificates on demand for yes1\.example/);
    const folders = await readdir(join(site.folder, 'data/acme'));
    const server = folders.find((name) => name !== 'challenges') ?? '';
    const left = await readdir(join(site.folder, 'data/acme', server));
    assert.deepEqual(left.filter((name) => name.endsWith('.pem')).toSorted(), [
      'yes2.example.pem',
      'yes3.example.pem',
    ]);
  });

  test('survives a flood of 10,000 names', async (t) => {
    const { plain, asked } = await startAsked(t);
    const { site, acme } = await startBoth(t, {}, { ...noHosts, tls: plain });
    const began = performance.now();
    let next = 0;
    const attack = async (): Promise<void> => {
      while (next < 10_000) {
        next += 1;
        const servername = `no${next}.example`;
        const socket = connect({ port: site.tlsPort, host: '127.0.0.1', servername });
        await new Promise((resolve) => {
          socket.on('error', () => undefined).once('close', resolve);
        });
      }
    };
    // More than may wait for their turn, so that the others are refused at once.
    await Promise.all(Array.from({ length: 500 }, attack));
    const seconds = (performance.now() - began) / 1_000;
    assert.ok(asked.length <= 20 + 10 * seconds + 10, `${asked.length} in ${seconds} s`);
    assert.equal(acme.orders.length, 0);
    const { data } = await site.call('svc1.server.status', {});
    assert.deepEqual(data.certificates, []);
  });

  test('that one worker obtains serves the others', async (t) => {
    const { ini } = await startAsked(t);
    const ports = await freePorts();
    const acme = await startAcmeServer(t, { httpPort: ports.http, tlsPort: ports.https });
    const text =
      `[server]\nlisten[] = http://127.0.0.1:${ports.http}\n` +
      `listen[] = https://127.0.0.1:${ports.https}\ndata = data\nworkers = 2\n` +
      acmeIni(acme.directory, [], ini);
    const { iniFile } = await serverFolder(t, '', { 'server.ini': text, 'ca.pem': acme.ca });
    await startServed(t, iniFile);
    // The system deals the connections out to the workers.
    const hosts = Array.from({ length: 4 }, (_, at) => `yes${at}.example`);
    for (const host of hosts) {
      await Promise.all(Array.from({ length: 4 }, () => untilIssued(ports.https, host)));
    }
    assert.equal(acme.orders.length, hosts.length);
  });

  test('comes from Pebble, too', { skip: withoutPebble }, async (t) => {
    const { ini } = await startAsked(t);
    const ports = await freePorts();
    const pebble = await startPebble(t, { httpPort: ports.http, tlsPort: ports.https });
    const site = await startManagedSite(t, { acme: pebble, ports, ...noHosts, tls: ini });
    await untilIssued(site.tlsPort, 'yes.example');
  });
});
