import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { connect } from 'node:tls';
import { AcmeFolder } from '../../../src/modules/acme/folder.ts';
import { createAuthority } from '../../certificates.ts';
import { temporaryFolder, writeFiles } from '../../folder.ts';
import { readTestConfig } from '../../harness.ts';
import { startServed } from '../../process.ts';
import { acmeIni, certificateOf, freePorts, startBoth, startManagedSite } from './rig.ts';
import { noDns, notOnDemand } from './no-dns.ts';
import { startAcmeServer } from './server.ts';

const noMore = {
  email: undefined,
  eabKid: undefined,
  eabKeyFile: undefined,
  profile: undefined,
  allowPrivate: [],
  ...noDns,
  ...notOnDemand,
  caFile: undefined,
};

suite('certificates from an ACME server', () => {
  for (const [whose, tls] of [
    ['has an address', 'acme_email = admin@example.com'],
    ['has none', ''],
  ] as const)
    test(`are issued for each host to one account, which ${whose}`, async (t) => {
      const { site, acme } = await startBoth(t, {}, { hosts: ['a.example', 'b.example'], tls });
      await site.untilLogged(/\[tls\.a\.example\] is in use/);
      await site.untilLogged(/(\[tls\.b\.example\] is in use|No certificate for b\.example)/);
      const { subjectaltname } = await certificateOf(site.tlsPort, 'b.example');
      assert.equal(subjectaltname, 'DNS:b.example');
      assert.equal(acme.accounts, 1);
    });

  test('are issued by http-01, one for each host, to one account', async (t) => {
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
    assert.equal(reply.status, 301, 'a request without TLS is redirected to https');
  });

  test('are issued by tls-alpn-01 if the site listens with TLS only', async (t) => {
    const { site, acme } = await startBoth(t, {}, { ways: ['https'] });
    await site.untilLogged(/\[tls\.shop\.example\] is in use/);
    assert.equal(acme.orders[0]?.way, 'tls-alpn-01');
    const { subjectaltname } = await certificateOf(site.tlsPort, 'shop.example');
    assert.equal(subjectaltname, 'DNS:shop.example');
  });

  test('are issued by the challenge that the ACME server offers, even if it refuses nonces', async (t) => {
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

  test('are issued to an account with an external account binding', async (t) => {
    const key = randomBytes(32).toString('base64url');
    const { site } = await startBoth(
      t,
      { binding: { kid: 'customer 7', key } },
      {
        tls: 'acme_eab_kid = customer 7\nacme_eab_key = eab.key',
        files: { 'eab.key': `${key}\n` },
      },
    );
    await site.untilLogged(/\[tls\.shop\.example\] is in use/);
    assert.ok(!site.logged().includes(key));
  });

  test('are readable by their owner only, and no answer or log has their secrets', async (t) => {
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
    assert.equal(
      secrets.length,
      3,
      'a key authorization, the key of the account, and that of the certificate',
    );
    const output = site.logged() + JSON.stringify(await site.status());
    for (const secret of secrets) assert.ok(!output.includes(secret));
    assert.deepEqual(await readdir(join(folder, 'challenges')), []);
  });

  test('are renewed while the old one is in use, and open connections continue', async (t) => {
    const ports = await freePorts();
    const { promise: asked, resolve: go } = Promise.withResolvers<undefined>();
    const acme = await startAcmeServer(t, {
      httpPort: ports.http,
      tlsPort: ports.https,
      refuse: (path) => (path === '/order' ? asked : undefined),
    });
    const settings = { hosts: ['shop.example'], directory: acme.directory, ...noMore };
    const [{ certFile } = { certFile: '' }] = new AcmeFolder('data', settings).certificates;
    // It is valid from yesterday on, so less than a third of its validity is left.
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

  test('are renewed with the former settings if a reload cannot apply the new ones', async (t) => {
    const { site } = await startBoth(t, {}, { tls: 'http_redirect = no' });
    await site.untilLogged(/\[tls\.shop\.example\] is in use/);
    const renewals = async () =>
      (await (await fetch(`${site.url}/svc1/metrics`)).text()).includes(
        'waymark_acme_failures{host="shop.example"}',
      );
    assert.ok(await renewals());
    const directory = 'https://127.0.0.1:1/other';
    const digest = createHash('sha256').update(directory).digest('hex').slice(0, 8);
    // A file has the path of the folder of the other ACME server.
    await writeFile(join(site.folder, 'data/acme', `127.0.0.1-${digest}`), '');
    const ini = await readFile(site.iniFile, 'utf8');
    await writeFile(
      site.iniFile,
      ini.replace(/acme_directory = .*/, `acme_directory = ${directory}`),
    );
    site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
    await site.untilLogged(/cannot apply the changed settings of ACME, so the former ones stay/);
    assert.ok(await renewals());
  });

  test('are ordered by one of several workers, and used by all', async (t) => {
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
