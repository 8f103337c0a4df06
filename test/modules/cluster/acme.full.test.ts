import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { freePorts, certificateOf, startManagedSite, type Ports } from '../acme/rig.ts';
import { startAcmeServer, type AcmeServer } from '../acme/server.ts';
import { needsNats, startLog, type LogRig } from './rig.ts';

const secretsKey = randomBytes(32).toString('base64');

interface NodeOptions {
  readonly name: string;
  readonly ports: Ports;
  readonly hosts?: readonly string[];
  readonly ways?: readonly ('http' | 'https')[];
  readonly secretsKey?: string;
}

/** Starts a node of a cluster that gets certificates from an ACME server. */
function startNode(
  t: TestContext,
  { settings }: LogRig,
  acme: AcmeServer,
  { name, secretsKey: key = secretsKey, ...more }: NodeOptions,
) {
  const cluster = `[cluster]\nservers = ${settings.servers.join(', ')}\n`;
  return startManagedSite(t, {
    acme,
    ...more,
    ini: `[node]\nrole = central\nname = ${name}\n${cluster}secrets_key_file = cluster.key\n`,
    files: { 'cluster.key': key },
  });
}

/** What a node says about its certificate. */
async function stateAt(
  { status }: Pick<Awaited<ReturnType<typeof startNode>>, 'status'>,
  adminKey: string,
): Promise<{ readonly state: string; readonly node: string }> {
  const [{ acme }] = (await status(adminKey)).data.certificates;
  return acme;
}

suite('certificates by ACME in a cluster', needsNats, () => {
  test('are ordered once, and used by all nodes, each of which answers challenges', async (t) => {
    const rig = await startLog(t, 1);
    const ports = [await freePorts(), await freePorts(), await freePorts()] as const;
    // The challenges reach a node that orders nothing.
    const acme = await startAcmeServer(t, { httpPort: ports[0].http, tlsPort: ports[0].https });
    const plain = { name: 'web-0', ports: ports[0], hosts: [], ways: ['http'] } as const;
    const third = await startNode(t, rig, acme, plain);
    const [one, other] = await Promise.all([
      startNode(t, rig, acme, { name: 'web-1', ports: ports[1] }),
      startNode(t, rig, acme, { name: 'web-2', ports: ports[2] }),
    ]);
    const inUse = /certificate of \[tls\.shop\.example\] is in use/;
    await Promise.all([one.untilLogged(inUse), other.untilLogged(inUse)]);
    const issued = /has issued a certificate for shop\.example/;
    await Promise.race([one.untilLogged(issued), other.untilLogged(issued)]);
    assert.deepEqual([acme.orders.length, acme.accounts], [1, 1]);
    for (const site of [one, other]) {
      // The node that has not ordered follows the states of the other.
      let state = await stateAt(site, third.adminKey);
      while (state.state === 'obtaining') state = await stateAt(site, third.adminKey);
      assert.equal(state.state, 'valid');
      assert.match(state.node, /^web-[12]$/);
    }
    const [first, second] = await Promise.all(
      [one, other].map(({ tlsPort }) => certificateOf(tlsPort, 'shop.example')),
    );
    assert.equal(first?.subjectaltname, 'DNS:shop.example');
    assert.equal(second?.fingerprint256, first.fingerprint256);

    const [authorization = assert.fail()] = acme.keyAuthorizations;
    for (const { folder } of [one, other]) {
      assert.ok(!(await readdir(join(folder, 'data'))).includes('acme'), 'no plain files');
      const stored = await readFile(join(folder, 'data/data.mdb'));
      for (const secret of ['PRIVATE KEY', authorization]) assert.ok(!stored.includes(secret));
    }
    await Promise.all([third, one, other].map(({ waymark }) => waymark.stop(0)));
  });
});
