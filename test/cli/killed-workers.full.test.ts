import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'node:tls';
import { createAuthority } from '../certificates.ts';
import { freePort } from '../free-port.ts';
import { postOperation } from '../harness.ts';
import {
  isDead,
  killAll,
  runWaymark,
  serverFolder,
  startServed,
  workersOf,
  type Served,
} from '../process.ts';
import { openSocket, readToClose } from '../core/pipeline/raw-client.ts';

const onLinux = { skip: process.platform !== 'linux' && 'needs /proc' };

suite('when a worker is killed', onLinux, () => {
  test('a visitor who connects meanwhile is served by another worker', async (t) => {
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
      // The next round kills a worker only once both serve again.
      while (!(await bothServe(served))) await delay(20);
    }
  });

  test('a visitor is disconnected if there is no other worker', async (t) => {
    const { iniFile } = await serverFolder(t, 'workers = 2\n');
    const served = await startServed(t, iniFile);
    // The leader is stopped, so that it accepts all visitors and then finds both workers dead. It
    // would leave a visitor with a worker that seems to be alive.
    process.kill(served.pid, 'SIGSTOP');
    const visitors: Socket[] = [];
    for (let count = 0; count < 4; count += 1) visitors.push(await openSocket(t, served.port));
    await killAll(workersOf(served));
    const answers = visitors.map(readToClose);
    for (const visitor of visitors) visitor.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    process.kill(served.pid, 'SIGCONT');
    assert.deepEqual(await Promise.all(answers), ['', '', '', '']);
  });

  test('a new worker has the certificate of the others, also while the files on disk do not match', async (t) => {
    const authority = await createAuthority();
    const [old, next] = [
      await authority.issue(['localhost']),
      await authority.issue(['localhost']),
    ];
    const port = await freePort();
    const tls = `listen[] = https://127.0.0.1:${port}\n[tls]\ncert = a.pem\nkey = a.key\n`;
    const files = { 'a.pem': old.cert, 'a.key': old.key };
    const { folder, iniFile, ini } = await serverFolder(t, '', files);
    await writeFile(iniFile, ini.replace('listen =', 'workers = 2\nlisten[] =') + tls);
    const served = await startServed(t, iniFile);
    await writeFile(join(folder, 'a.pem'), next.cert);
    while (!served.out().includes('stays in use')) await delay(20);
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

test('workers end with a killed leader, also in the middle of writes', onLinux, async (t) => {
  const { iniFile } = await serverFolder(t, 'workers = 2\n');
  const served = await startServed(t, iniFile);
  const { adminKey: apikey } = served;
  const workers = workersOf(served);
  let stored = 0;
  const enough = Promise.withResolvers<undefined>();
  const write = async (writer: number): Promise<void> => {
    for (let n = 0; ; n += 1) {
      const page = { path: `/${writer}/${n}`, kind: 'content', content: 'x'.repeat(10_000) };
      await postOperation(served.url, 'svc1.userinterface.insert', page, { apikey });
      stored += 1;
      if (stored === 40) enough.resolve(undefined);
    }
  };
  const writing = Promise.allSettled(Array.from({ length: 32 }, (_, writer) => write(writer)));
  await enough.promise;
  served.child.kill('SIGKILL');
  await writing;
  while (!workers.every(isDead)) await delay(10);
  // Nothing holds the write lock of the data.
  const again = await startServed(t, iniFile, { first: false });
  const page = { path: '/later', kind: 'content', content: 'later' };
  const { error } = await postOperation(again.url, 'svc1.userinterface.insert', page, { apikey });
  assert.equal(error, undefined);
});

test('a worker whose leader is killed during start ends without an error message', async (t) => {
  const { iniFile } = await serverFolder(t, 'workers = 2\n');
  // Only the worker itself can kill the leader right before it sends; the pipe takes a moment to close.
  const killed = `const { send } = process;
    process.send = (message, ...more) => {
      if (message.kind === 'get-config') {
        process.kill(process.ppid, 'SIGKILL');
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
      }
      return send.call(process, message, ...more);
    };`;
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(killed)}`;
  const { signal, err } = await runWaymark(['serve', '--config', iniFile], {
    env: { NODE_OPTIONS },
  });
  assert.equal(signal, 'SIGKILL');
  assert.match(err, /^(?:waymark: The server is stopping\.\n)?$/);
});

/** Whether both workers serve: only then do the metrics name them. */
async function bothServe({ url }: Served): Promise<boolean> {
  const headers = { connection: 'close' };
  const metrics = await (await fetch(`${url}/svc1/metrics`, { headers })).text();
  return [1, 2].every((number) => metrics.includes(`bytes{process="worker-${number}"}`));
}
