import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { suite, test } from 'node:test';
import { httpSource } from '../../core/outbound/sources.ts';
import { serverFolder, startServed } from '../../process.ts';

suite('waymark serve on a signal', () => {
  for (const workers of [1, 2]) {
    test(`keeps serving after SIGHUP and SIGUSR1, with ${workers} workers`, async (t) => {
      const { iniFile } = await serverFolder(t, `workers = ${workers}\n`);
      const served = await startServed(t, iniFile);
      const ended = served.closed.then(() => assert.fail('it has ended'));
      for (const signal of ['SIGHUP', 'SIGUSR1'] as const) {
        served.child.kill(signal);
        while (!served.out().includes(`${signal}: `)) {
          await Promise.race([once(served.child.stdout ?? served.child, 'data'), ended]);
        }
        assert.equal((await fetch(`${served.url}/svc1/health`)).status, 200);
      }
      ended.catch(() => undefined);
      served.child.kill('SIGTERM');
      assert.deepEqual(await served.closed, { code: 0, signal: null });
      assert.doesNotMatch(served.err(), /Debugger/);
    });
  }

  test('does not wait for content that only the cache still reads, also from before a reload', async (t) => {
    const { origin } = await httpSource(t, (_, response) => {
      response.writeHead(200, { 'Cache-Control': 'max-age=60' });
      // The source never sends the rest.
      response.write(Buffer.alloc(3 << 20));
    });
    const more = '[fetch]\nallow_private = 127.0.0.0/8\n';
    const { iniFile, ini } = await serverFolder(t, more);
    const served = await startServed(t, iniFile);
    await fetch(`${served.url}/svc1/userinterface/insert`, {
      method: 'POST',
      headers: { apikey: served.adminKey, 'Content-Type': 'application/json' },
      body: JSON.stringify({
        v: { path: '/far/*', kind: 'content.fetch', enginedata: { source: `${origin}/*` } },
      }),
    });
    const askAndLeave = async (path: string): Promise<void> => {
      const reply = await fetch(`${served.url}${path}`);
      await reply.body?.cancel();
    };
    await askAndLeave('/far/before');
    await writeFile(iniFile, `${ini}timeout = 29s\n`);
    while (!served.out().includes('uses the changed ini file'))
      await once(served.child.stdout ?? served.child, 'data');
    await askAndLeave('/far/after');
    served.child.kill('SIGTERM');
    assert.deepEqual(await served.closed, { code: 0, signal: null });
    assert.match(served.out(), /Stopped; all requests ended/);
  });

  test('a second signal ends it at once', async (t) => {
    const { iniFile } = await serverFolder(t, '[disk.site]\nroot = site\n', {
      'site/big.bin': Buffer.alloc(64 << 20, 'x'),
    });
    // A thread that is busy until long after the test, as one in a transaction of lmdb can be.
    const busy = `import { pbkdf2 } from 'node:crypto';
      pbkdf2('a', 'b', 2 ** 30, 64, 'sha512', () => undefined);`;
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(busy)}`;
    const served = await startServed(t, iniFile, { env: { NODE_OPTIONS } });
    const reply = await fetch(`${served.url}/big.bin`);
    served.child.kill('SIGTERM');
    while (!served.out().includes('Stopping'))
      await once(served.child.stdout ?? served.child, 'data');
    served.child.kill('SIGTERM');
    assert.equal((await served.closed).signal, 'SIGKILL');
    await assert.rejects(reply.bytes(), 'the download sees that it was cut');
  });
});
