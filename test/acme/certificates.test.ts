import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { connect } from 'node:tls';
import { AcmeFolder } from '../../src/acme/folder.ts';
import { createAuthority } from '../certificates.ts';
import { readTestConfig, temporaryFolder, writeFiles } from '../harness.ts';
import { startServed } from '../process.ts';
import { acmeIni, certificateOf, freePorts, startManagedSite, type ManagedSite } from './rig.ts';
import { startAcmeServer, type AcmeServer } from './server.ts';

type SiteOptions = Omit<Parameters<typeof startManagedSite>[1], 'acme' | 'ports'>;
type AcmeOptions = Omit<Parameters<typeof startAcmeServer>[1], 'httpPort' | 'tlsPort'>;

/** A site, and the ACME server that it gets its certificates from. */
async function startBoth(
  t: TestContext,
  acmeOptions: AcmeOptions = {},
  siteOptions: SiteOptions = {},
): Promise<{ readonly site: ManagedSite; readonly acme: AcmeServer }> {
  const ports = await freePorts();
  const looksAt = { httpPort: ports.http, tlsPort: ports.https };
  const acme = await startAcmeServer(t, { ...looksAt, ...acmeOptions });
  return { site: await startManagedSite(t, { acme, ports, ...siteOptions }), acme };
}

/** Changes the ini file of a site, and has it read again. */
async function reload(site: ManagedSite, change: (ini: string) => string): Promise<void> {
  await writeFile(site.iniFile, change(await readFile(site.iniFile, 'utf8')));
  site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
}

suite('certificates from an ACME server', () => {
  test('are got by http-01, each host its own, by one account', async (t) => {
    const hosts = ['shop.example', 'www.example'];
    const { site, acme } = await startBoth(t, {}, { hosts });
    for (const host of hosts) {
      await site.untilLogged(new RegExp(`\\[tls\\.${host}\\] is in use`));
      const { subjectaltname } = await certificateOf(site.tlsPort, host);
      assert.equal(subjectaltname, `DNS:${host}`);
    }
    assert.deepEqual(acme.orders.map(({ host, way }) => [host, way]).toSorted(), [
      ['shop.example', 'http-01'],
      ['www.example', 'http-01'],
    ]);
    assert.equal(acme.accounts, 1);
    const reply = await fetch(`${site.url}/a`, {
      headers: { host: 'shop.example' },
      redirect: 'manual',
    });
    assert.equal(reply.status, 301, 'what comes in the clear is sent on to https');
  });

  test('are got by tls-alpn-01 where nothing is answered in the clear', async (t) => {
    const { site, acme } = await startBoth(t, {}, { ways: ['https'] });
    await site.untilLogged(/\[tls\.shop\.example\] is in use/);
    assert.equal(acme.orders[0]?.way, 'tls-alpn-01');
    const { subjectaltname } = await certificateOf(site.tlsPort, 'shop.example');
    assert.equal(subjectaltname, 'DNS:shop.example');
  });

  test('are got by the way that the server offers, whatever nonces it refuses', async (t) => {
    const { site, acme } = await startBoth(t, {
      offers: ['dns-01', 'tls-alpn-01'],
      refuse: (path, count) =>
        path === '/order' && count === 1
          ? { status: 400, type: 'badNonce', detail: 'too old' }
          : undefined,
    });
    await site.untilLogged(/\[tls\.shop\.example\] is in use/);
    assert.deepEqual(
      acme.orders.map(({ way }) => way),
      ['tls-alpn-01'],
    );
  });

  test('are kept for the owner alone, and no secret of theirs is told', async (t) => {
    const { site, acme } = await startBoth(t);
    await site.untilLogged(/\[tls\.shop\.example\] is in use/);
    const folder = join(site.folder, 'data/acme');
    const secrets = [...acme.keyAuthorizations];
    for (const name of await readdir(folder, { recursive: true })) {
      const found = await stat(join(folder, name));
      assert.equal((found.mode & 0o777).toString(8), found.isDirectory() ? '700' : '600', name);
      const text = found.isFile() ? await readFile(join(folder, name), 'utf8') : '';
      secrets.push(...(/PRIVATE KEY-----\n(.+)/.exec(text)?.slice(1) ?? []));
    }
    assert.equal(secrets.length, 3, 'an answer, the key of the account, that of the certificate');
    const told = site.logged() + JSON.stringify(await site.status());
    for (const secret of secrets) assert.ok(!told.includes(secret));
    assert.deepEqual(await readdir(join(folder, 'challenges')), []);
  });

  test('are renewed while the old one is in use; connections that stand go on', async (t) => {
    const ports = await freePorts();
    const { promise: asked, resolve: go } = Promise.withResolvers<undefined>();
    const acme = await startAcmeServer(t, {
      httpPort: ports.http,
      tlsPort: ports.https,
      refuse: (path) => (path === '/order' ? asked : undefined),
    });
    const settings = { hosts: ['shop.example'], directory: acme.directory, ...noMore };
    const [{ certFile } = { certFile: '' }] = new AcmeFolder('data', settings).certificates;
    // From yesterday on; less than a third of its life is left.
    const before = await (await createAuthority()).issue(['shop.example'], { days: 0.4 });
    const files = { [certFile]: `${before.key}\n${before.cert}` };
    const site = await startManagedSite(t, { acme, ports, files });
    const standing = connect({
      port: ports.https,
      host: '127.0.0.1',
      servername: 'shop.example',
      rejectUnauthorized: false,
    });
    t.after(() => standing.destroy());
    await once(standing, 'secureConnect');
    assert.ok(Date.parse(standing.getPeerCertificate().valid_to) < Date.now() + 86_400_000);
    go(undefined);
    await site.untilLogged(/\[tls\.shop\.example\] was read again/);
    const after = await certificateOf(ports.https, 'shop.example');
    assert.ok(Date.parse(after.valid_to) > Date.now() + 80 * 86_400_000);
    standing.write('GET /a HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n');
    const [answer] = (await once(standing, 'data')) as [Buffer];
    assert.match(answer.toString(), /^HTTP\/1\.1 200/);
    const { data } = await site.status();
    assert.equal(data.certificates[0].acme.state, 'valid');
  });

  test('are got by one of several workers, and used by all', async (t) => {
    const ports = await freePorts();
    const acme = await startAcmeServer(t, { httpPort: ports.http, tlsPort: ports.https });
    const folder = await temporaryFolder(t);
    await writeFiles(folder, {
      'ca.pem': acme.ca,
      'server.ini':
        `[server]\nlisten[] = http://127.0.0.1:${ports.http}\n` +
        `listen[] = https://127.0.0.1:${ports.https}\ndata = data\nworkers = 2\n` +
        acmeIni(acme.directory, ['shop.example'], 'http_redirect = no'),
    });
    const served = await startServed(t, join(folder, 'server.ini'));
    const metrics = async () => (await fetch(`${served.url}/svc1/metrics`)).text();
    const inUse = /waymark_certificate_end_seconds\{section="\[tls\.shop\.example\]"/g;
    while ((await metrics()).match(inUse)?.length !== 2);
    assert.equal(acme.orders.length, 1);
    for (let asked = 0; asked < 8; asked += 1) {
      const { subjectaltname } = await certificateOf(ports.https, 'shop.example');
      assert.equal(subjectaltname, 'DNS:shop.example');
    }
  });
});

suite('an ACME server that gives no certificate', () => {
  test('is not asked again before it wants to be; log, status and metrics tell', async (t) => {
    const beforeMs = Date.now();
    const { site, acme } = await startBoth(
      t,
      {
        refuse: (path) =>
          path === '/order'
            ? { status: 429, type: 'rateLimited', detail: 'too many', retryAfter: '86400' }
            : undefined,
      },
      {
        hosts: ['shop.example'],
        tls: 'http_redirect = no\ncert = any.pem\nkey = any.key',
        files: await fallback(),
      },
    );
    await site.untilLogged(/No certificate for shop\.example: too many\. Next try at 20/);
    const [, { acme: state, problem, valid_until }] = (await site.status()).data.certificates;
    assert.deepEqual([state.state, state.failures, state.error], ['failed', 1, 'too many.']);
    assert.ok(Date.parse(state.next) >= beforeMs + 86_400_000);
    assert.deepEqual([problem, valid_until], [null, null]);
    assert.equal(acme.requests.filter((request) => request === 'POST /order').length, 1);
    const metrics = await (await fetch(`${site.url}/svc1/metrics`)).text();
    assert.match(metrics, /^waymark_acme_orders_total\{outcome="failed"\} 1$/m);
    assert.match(metrics, /^waymark_acme_failures\{host="shop\.example"\} 1$/m);
    assert.match(metrics, /^waymark_certificate_end_seconds\{section="\[tls\]"\} \d+$/m);
    const { subjectaltname } = await certificateOf(site.tlsPort, 'shop.example');
    assert.equal(subjectaltname, 'DNS:any.example', 'until then, the default one is used');
  });

  test('leaves requests in the clear as they are, for the time being', async (t) => {
    const { site } = await startBoth(
      t,
      { refuse: () => ({ status: 500, type: 'serverInternal', detail: 'broken' }) },
      { tls: 'cert = any.pem\nkey = any.key', files: await fallback() },
    );
    await site.untilLogged(/No certificate for shop\.example: .*\/dir\. Next try at/);
    const ask = (Host: string) =>
      site.raw(`GET /a HTTP/1.1\r\nHost: ${Host}\r\nConnection: close\r\n\r\n`);
    assert.match(await ask('shop.example'), /^HTTP\/1\.1 200 /);
    assert.match(await ask('other.example'), /\r\nLocation: https:\/\/any\.example:\d+\/a\r\n/);
  });

  test('because it does not find us is quoted', async (t) => {
    const ports = await freePorts();
    const { http: nobody } = await freePorts();
    const acme = await startAcmeServer(t, { httpPort: nobody, tlsPort: ports.https });
    const site = await startManagedSite(t, { acme, ports });
    await site.untilLogged(/No certificate for shop\.example: .*found .*ECONNREFUSED.* Next try/);
    assert.deepEqual(
      acme.orders.map(({ way }) => way),
      ['http-01'],
    );
  });

  test('is dropped for another one by a reload, which orders at once', async (t) => {
    const { site } = await startBoth(t, {
      refuse: () => ({ status: 403, type: 'unauthorized', detail: 'closed' }),
    });
    await site.untilLogged(/No certificate for shop\.example: /);
    const ports = { httpPort: site.port, tlsPort: site.tlsPort };
    const other = await startAcmeServer(t, ports);
    await writeFile(join(site.folder, 'ca.pem'), other.ca);
    await reload(
      site,
      (ini) =>
        `${ini.replace(/acme_directory = .*/, `acme_directory = ${other.directory}`)}\n[tls.new.example]\nacme = yes\n`,
    );
    await site.untilLogged(/\[tls\.shop\.example\] is in use/);
    await site.untilLogged(/\[tls\.new\.example\] is in use/);
    assert.doesNotMatch(site.logged(), /restart/);
    await reload(site, (ini) => ini.replace('[tls.new.example]\nacme = yes\n', ''));
    while ((await site.status()).data.certificates.length !== 1);
    await assert.rejects(certificateOf(site.tlsPort, 'new.example'));
    assert.equal(
      (await certificateOf(site.tlsPort, 'shop.example')).subjectaltname,
      'DNS:shop.example',
    );
  });

  test('because it is silent does not hold up the end, and is asked after it', async (t) => {
    const { site, acme } = await startBoth(t, {
      refuse: (path) => (path === '/order' ? 'silence' : undefined),
    });
    while (!acme.requests.includes('POST /order')) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual(await site.waymark.stop(0), { cut: 0 });
    const { server, tls } = await readTestConfig(site.iniFile);
    const state = await new AcmeFolder(server.data, tls.acme).state('shop.example');
    assert.deepEqual([state?.state, state?.failures], ['failed', 0]);
    assert.equal(state?.next, state?.since);
  });

  const refusals: readonly (readonly [
    name: string,
    change: (ini: string) => string,
    why: RegExp,
  ])[] = [
    [
      'in a private network that is not allowed',
      (ini) => ini.replace(/acme_allow_private = .*/, ''),
      /127\.0\.0\.1 \(loopback\) is not named by allow_private/,
    ],
    [
      'that nobody known vouches for',
      (ini) => ini.replace(/acme_ca = .*/, ''),
      /127\.0\.0\.1:\d+: .*(?:certificate|signed)/,
    ],
  ];
  for (const [name, change, why] of refusals) {
    test(`because it is ${name}, is not asked for anything`, async (t) => {
      const { site } = await startBoth(
        t,
        {},
        { hosts: [], tls: 'cert = any.pem\nkey = any.key', files: await fallback() },
      );
      const ports = { httpPort: site.port, tlsPort: site.tlsPort };
      const other = await startAcmeServer(t, ports);
      await reload(site, (ini) =>
        change(
          `${ini.replace(/acme_directory = .*/, `acme_directory = ${other.directory}`)}\n[tls.shop.example]\nacme = yes\n`,
        ),
      );
      await site.untilLogged(/No certificate for shop\.example: .* Next try at/);
      assert.match(site.logged(), why);
      assert.deepEqual(other.requests, []);
    });
  }
});

const noMore = { email: undefined, allowPrivate: [], caFile: undefined };

/** A default certificate. */
async function fallback(): Promise<Record<string, string>> {
  const { cert, key } = await (await createAuthority()).issue(['any.example']);
  return { 'any.pem': cert, 'any.key': key };
}
