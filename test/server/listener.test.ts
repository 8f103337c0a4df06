import assert from 'node:assert/strict';
import { once } from 'node:events';
import { link, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { listen, listenFailure } from '../../src/server/listener.ts';
import { temporaryFolder } from '../folder.ts';

suite('listening on a unix socket', () => {
  async function listenAt(t: TestContext, path: string): Promise<string> {
    const server = createServer();
    t.after(() => server.close());
    return (await listen(server, { kind: 'unix', path })).address;
  }

  test('replaces a socket that nobody serves, and no other file', async (t) => {
    const folder = await temporaryFolder(t);
    await writeFile(join(folder, 'notes'), 'precious');
    await mkdir(join(folder, 'pages'));
    const gone = createServer();
    await listen(gone, { kind: 'unix', path: join(folder, 'gone') });
    await link(join(folder, 'gone'), join(folder, 'w'));
    gone.close();
    await once(gone, 'close');
    assert.equal(await listenAt(t, join(folder, 'w')), `unix:${join(folder, 'w')}`);
    for (const [name, reason] of [
      ['notes', 'something that is no socket is there'],
      ['pages', 'something that is no socket is there'],
      ['none/w', 'there is no such folder'],
      ['x'.repeat(120), 'the path is too long for a socket'],
      ['w', 'it is in use; stop what listens there or change listen in the ini file'],
    ] as const) {
      const path = join(folder, name);
      const message = `Cannot listen on unix:${path}: ${reason}.`;
      await assert.rejects(listenAt(t, path), { code: 'unavailable', message });
    }
    assert.equal(await readFile(join(folder, 'notes'), 'utf8'), 'precious');
  });
});

test('a port below 1024 without permission is reported with what to do', () => {
  const where = { kind: 'tcp', scheme: 'http', host: '0.0.0.0', port: 80 } as const;
  const error = Object.assign(new Error('listen EACCES'), { code: 'EACCES' });
  const { message } = listenFailure(where, error);
  assert.match(
    message,
    /^Cannot listen on 0\.0\.0\.0:80: permission denied: .*CAP_NET_BIND_SERVICE/,
  );
  const high = listenFailure({ ...where, port: 8080 }, error).message;
  assert.equal(high, 'Cannot listen on 0.0.0.0:8080: permission denied.');
});
