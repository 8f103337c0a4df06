import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { startPebble, withoutPebble, type Pebble } from './pebble.ts';
import { certificateOf, freePorts, startManagedSite, type ManagedSite } from './rig.ts';

/** A site, and the Pebble that issues its certificates. */
async function startWithPebble(
  t: TestContext,
  given: Omit<Parameters<typeof startManagedSite>[1], 'acme' | 'ports'>,
): Promise<{ readonly site: ManagedSite; readonly pebble: Pebble }> {
  const ports = await freePorts();
  const pebble = await startPebble(t, { httpPort: ports.http, tlsPort: ports.https });
  return { site: await startManagedSite(t, { acme: pebble, ports, ...given }), pebble };
}

suite('certificates from Pebble', { skip: withoutPebble }, () => {
  test('are issued by http-01, one for each host', async (t) => {
    const hosts = ['shop.example', 'www.example'];
    const { site, pebble } = await startWithPebble(t, { hosts });
    await site.untilLogged(/\[tls\.shop\.example\] is in use/);
    await site.untilLogged(/\[tls\.www\.example\] is in use/);
    for (const host of hosts) {
      const { subjectaltname, issuer } = await certificateOf(site.tlsPort, host);
      assert.equal(subjectaltname, `DNS:${host}`);
      assert.match(String(issuer.CN), /Pebble Intermediate/);
    }
    assert.match(pebble.output(), /validate w\/ HTTP: http:\/\/www\.example/);
  });

  test('are issued by tls-alpn-01 if the site listens with TLS only', async (t) => {
    const { site } = await startWithPebble(t, { ways: ['https'] });
    await site.untilLogged(/\[tls\.shop\.example\] is in use/);
    const { subjectaltname } = await certificateOf(site.tlsPort, 'shop.example');
    assert.equal(subjectaltname, 'DNS:shop.example');
  });

  test('that are refused are in the log and in server.status', async (t) => {
    const { site } = await startWithPebble(t, {
      hosts: ['shop.example', 'blocked-domain.example'],
    });
    await site.untilLogged(/No certificate for blocked-domain\.example: .+ Retrying at 20/);
    assert.match(site.logged(), /blocked-domain\.example: .*(?:policy|block)/i);
    await site.untilLogged(/\[tls\.shop\.example\] is in use/);
    const [valid, failed] = (await site.status()).data.certificates;
    assert.deepEqual([valid.names, valid.acme.state], [['shop.example'], 'valid']);
    const left = Date.parse(valid.valid_until) - Date.parse(valid.acme.next);
    assert.ok(left >= 29 * 86_400_000 && left <= 36 * 86_400_000, `renewed ${left} ms before`);
    assert.deepEqual([failed.names, failed.valid_until], [[], null]);
    assert.deepEqual([failed.acme.state, failed.acme.failures], ['failed', 1]);
  });
});
