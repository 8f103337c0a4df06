import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'node:tls';
import { createAuthority } from '../certificates.ts';
import { serverFolder, startServed, workersOf } from '../process.ts';

const onLinux = { skip: process.platform === 'linux' ? false : 'looks at /proc' };

suite('when a worker is killed', onLinux, () => {
  test('a visitor who comes as a worker dies is answered by another one', async (t) => {
    const { iniFile } = await serverFolder(t, 'workers = 2\n');
    const served = await startServed(t, iniFile);
    for (let round = 0; round < 2; round += 1) {
      const [first = 0] = workersOf(served);
      process.kill(first, 'SIGKILL');
      const asked = Array.from({ length: 4 }, () => {
        const options = { headers: { connection: 'close' }, signal: AbortSignal.timeout(15_000) };
        return fetch(`${served.url}/none`, options).then(
          ({ status }) => String(status),
          (error: unknown) => (error instanceof Error ? error.name : 'failed'),
        );
      });
      const answers = await Promise.all(asked);
      assert.deepEqual(new Set(answers), new Set(['404']), `round ${round}`);
      while (workersOf(served).length < 2) await delay(20);
      // Until the new one serves, the other is spared.
      while (served.out().split('another one is started').length < round + 2) await delay(20);
      await delay(1_500);
    }
  });

  test('and is let go where there is no other one', async (t) => {
    const { iniFile } = await serverFolder(t, 'workers = 2\n');
    const served = await startServed(t, iniFile);
    for (const worker of workersOf(served)) process.kill(worker, 'SIGKILL');
    const asked = Array.from({ length: 4 }, () =>
      assert.rejects(fetch(served.url, { signal: AbortSignal.timeout(15_000) }), TypeError),
    );
    await Promise.all(asked);
  });

  test('a new one has the certificate of the others while its files are no pair', async (t) => {
    const authority = await createAuthority();
    const [old, next] = [
      await authority.issue(['localhost']),
      await authority.issue(['localhost']),
    ];
    const unused = createServer().listen(0, '127.0.0.1');
    await once(unused, 'listening');
    const { port } = unused.address() as AddressInfo;
    unused.close();
    const tls = `listen[] = https://127.0.0.1:${port}\n[tls]\ncert = a.pem\nkey = a.key\n`;
    const files = { 'a.pem': old.cert, 'a.key': old.key };
    const { folder, iniFile, ini } = await serverFolder(t, '', files);
    await writeFile(iniFile, ini.replace('listen =', 'workers = 2\nlisten[] =') + tls);
    const served = await startServed(t, iniFile);
    await writeFile(join(folder, 'a.pem'), next.cert);
    while (!served.out().includes('stays as it is')) await delay(20);
    for (const worker of workersOf(served)) process.kill(worker, 'SIGKILL');
    const shake = async (): Promise<string> => {
      const socket = connect({
        host: '127.0.0.1',
        port,
        servername: 'localhost',
        ca: authority.cert,
      });
      await once(socket, 'secureConnect');
      const { serialNumber } = socket.getPeerCertificate();
      socket.destroy();
      return serialNumber;
    };
    let serial: string | undefined;
    const deadline = Date.now() + 15_000;
    while (serial === undefined) {
      assert.ok(Date.now() < deadline, served.err());
      serial = await shake().catch(() => undefined);
      await delay(50);
    }
    assert.equal(serial, new X509Certificate(old.cert).serialNumber);
  });
});
