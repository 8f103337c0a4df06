import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { runWaymark, serverFolder, startServed } from '../../../process.ts';
import { isStopped, startStoppedOpener } from '../scratch.ts';

const onLinux = { skip: process.platform !== 'linux' && 'needs /proc' };

suite('a process that is stopped while it opens the data of a server', onLinux, () => {
  test('makes a server refuse changes with 503, serve pages, and check says why', async (t) => {
    const { folder, iniFile } = await serverFolder(t, '[auth]\nanonymous = render\n');
    const served = await startServed(t, iniFile);
    const insert = (path: string): Promise<Response> =>
      fetch(`${served.url}/svc1/userinterface/insert`, {
        method: 'POST',
        headers: { apikey: served.adminKey },
        body: JSON.stringify({ v: { path, kind: 'content', content: 'x' } }),
      });
    assert.equal((await insert('/before')).status, 200);
    const opener = startStoppedOpener(t, join(folder, 'data'));
    const ended = once(opener, 'close');
    assert.ok(await isStopped(opener));
    const refused = await insert('/during');
    assert.equal(refused.status, 503);
    assert.equal(refused.headers.get('retry-after'), '10');
    assert.match(await refused.text(), /Nothing was stored: another process opens the data/);
    assert.match(served.err() + served.out(), new RegExp(`Process ${opener.pid} .* is stopped`));
    assert.equal((await fetch(`${served.url}/before`)).status, 200);
    const checked = await runWaymark(['check', '--config', iniFile]);
    assert.equal(checked.code, 0);
    assert.match(checked.err, new RegExp(`Process ${opener.pid} .*"kill -CONT ${opener.pid}"`));
    opener.kill('SIGCONT');
    await ended;
    assert.equal((await insert('/during')).status, 200);
  });
});
