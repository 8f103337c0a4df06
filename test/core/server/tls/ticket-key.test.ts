import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { silentLog } from '../../../../src/core/report/log.ts';
import { Certificates } from '../../../../src/core/server/tls/certificates.ts';
import { TicketKey } from '../../../../src/core/server/tls/ticket-key.ts';
import { createAuthority } from '../../../certificates.ts';
import { temporaryFolder } from '../../../folder.ts';
import { tlsVersions, visit } from './sessions.ts';
import { startTlsSite } from './tls-rig.ts';
import { testTasks } from '../../../core/background/test-tasks.ts';

const authority = createAuthority();

/** Starts as many servers of one certificate as there are keys; resolves to their ports. */
async function startServers(t: TestContext, keys: readonly TicketKey[]) {
  const folder = await temporaryFolder(t);
  const files = { certFile: join(folder, 'c.pem'), keyFile: join(folder, 'k.pem') };
  const pair = await (await authority).issue(['shop.example']);
  await writeFile(files.certFile, pair.cert);
  await writeFile(files.keyFile, pair.key);
  const ports = keys.map(async (key) => {
    const dependencies = { log: silentLog, now: Date.now, tasks: testTasks() };
    const certificate = { host: undefined, ...files };
    const certificates = await Certificates.open([certificate], undefined, dependencies);
    t.after(() => certificates.close());
    const server = createTlsServer((socket) => socket.resume().on('error', () => undefined));
    certificates.serve(server);
    key.follow((bytes) => {
      certificates.setTicketKey(bytes);
    });
    // As node:cluster does in a worker.
    server.setTicketKeys(randomBytes(48));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    return (server.address() as AddressInfo).port;
  });
  return Promise.all(ports);
}

suite('the key of session tickets', () => {
  for (const version of tlsVersions) {
    test(`continues sessions at each server that has it, until it is replaced (${version})`, async (t) => {
      const shared = new TicketKey();
      const [one = 0, other = 0, foreign = 0] = await startServers(t, [
        shared,
        shared,
        new TicketKey(),
      ]);
      const { session, isReused } = await visit(version, { port: one });
      assert.equal(isReused, false);
      assert.equal((await visit(version, { port: other, session })).isReused, true);
      assert.equal((await visit(version, { port: foreign, session })).isReused, false);
      shared.replace();
      const next = await visit(version, { port: one, session });
      assert.equal(next.isReused, false, 'the former key is gone');
      assert.equal((await visit(version, { port: other, ...next })).isReused, true);
    });

    test(`stays after a change of the certificate, also for names of their own (${version})`, async (t) => {
      const certificates = { tls: ['old.example'], 'tls.www.example': ['www.example'] };
      const site = await startTlsSite(t, { certificates });
      const port = site.tlsPort;
      const first = await visit(version, { port });
      const named = await visit(version, { port, servername: 'www.example' });
      const renewed = await site.authority.issue(['new.example']);
      await writeFile(join(site.folder, 'tls', 'tls.key'), renewed.key);
      await writeFile(join(site.folder, 'tls', 'tls.pem'), renewed.cert);
      await site.untilLogged(/\[tls\] was read again/);
      const { session } = first;
      assert.equal((await visit(version, { port, session })).isReused, true);
      const again = { port, servername: 'www.example', session: named.session };
      assert.equal((await visit(version, again)).isReused, true);
    });
  }

  test('is replaced at intervals, until the server stops', async () => {
    const seen: string[] = [];
    const key = new TicketKey();
    const replaced = Promise.withResolvers<undefined>();
    key.follow((bytes) => {
      if (seen.push(bytes.toString('hex')) === 4) replaced.resolve(undefined);
    });
    const running = testTasks().start(key.rotation(1));
    await replaced.promise;
    await running.stop();
    await running.over;
    assert.equal(new Set(seen).size, 4);
    assert.equal(seen.at(-1), key.current.toString('hex'));
  });
});
