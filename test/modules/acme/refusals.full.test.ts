import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { AcmeFolder } from '../../../src/modules/acme/folder.ts';
import { createAuthority } from '../../certificates.ts';
import { freePort } from '../../free-port.ts';
import { readTestConfig } from '../../harness.ts';
import { certificateOf, freePorts, startBoth, startManagedSite, type ManagedSite } from './rig.ts';
import { startAcmeServer } from './server.ts';

/** Changes the ini file of a site, and resolves once the server has reloaded it. */
async function reload(site: ManagedSite, change: (ini: string) => string): Promise<void> {
  await writeFile(site.iniFile, change(await readFile(site.iniFile, 'utf8')));
  site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
}

suite('an ACME server that issues no certificate', () => {
  test('gets the next order after its Retry-After; log, status and metrics name the failure', async (t) => {
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
    await site.untilLogged(/No certificate for shop\.example: too many\. Retrying at 20/);
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
    assert.equal(subjectaltname, 'DNS:any.example', 'the default certificate is used meanwhile');
  });

  test('leaves requests without TLS in place until there is a certificate', async (t) => {
    const { site } = await startBoth(
      t,
      { refuse: () => ({ status: 500, type: 'serverInternal', detail: 'broken' }) },
      { tls: 'cert = any.pem\nkey = any.key', files: await fallback() },
    );
    await site.untilLogged(/No certificate for shop\.example: .*\/dir\. Retrying at/);
    const ask = (Host: string) =>
      site.raw(`GET /a HTTP/1.1\r\nHost: ${Host}\r\nConnection: close\r\n\r\n`);
    assert.match(await ask('shop.example'), /^HTTP\/1\.1 200 /);
    assert.match(await ask('other.example'), /\r\nLocation: https:\/\/any\.example:\d+\/a\r\n/);
  });

  test('because it cannot reach this server is quoted in the log', async (t) => {
    const ports = await freePorts();
    const nobody = await freePort();
    const acme = await startAcmeServer(t, { httpPort: nobody, tlsPort: ports.https });
    const site = await startManagedSite(t, { acme, ports });
    await site.untilLogged(/No certificate for shop\.example: .*found .*ECONNREFUSED.* Retrying/);
    assert.deepEqual(
      acme.orders.map(({ way }) => way),
      ['http-01'],
    );
  });

  test('is replaced by another one at a reload, which orders at once', async (t) => {
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

  test('because it does not answer delays neither the stop nor the order after the next start', async (t) => {
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
      /127\.0\.0\.1 \(loopback\) is not in allow_private/,
    ],
    [
      'not certified by a trusted authority',
      (ini) => ini.replace(/acme_ca = .*/, ''),
      /127\.0\.0\.1:\d+: .*(?:certificate|signed)/,
    ],
  ];
  for (const [name, change, why] of refusals) {
    test(`because it is ${name}, gets no request`, async (t) => {
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
      await site.untilLogged(/No certificate for shop\.example: .* Retrying at/);
      assert.match(site.logged(), why);
      assert.deepEqual(other.requests, []);
    });
  }
});

/** A default certificate. */
async function fallback(): Promise<Record<string, string>> {
  const { cert, key } = await (await createAuthority()).issue(['any.example']);
  return { 'any.pem': cert, 'any.key': key };
}
