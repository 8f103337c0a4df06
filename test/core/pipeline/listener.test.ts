import assert from 'node:assert/strict';
import { once } from 'node:events';
import { link, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { listen, listenFailure, listenUrl } from '../../../src/core/server/listening/listener.ts';
import { temporaryFolder } from '../../folder.ts';

test('messages name the URL of a listener without the default port of its scheme', () => {
  for (const [scheme, address, family, port, expected] of [
    ['http', '0.0.0.0', 'IPv4', 80, 'http://localhost'],
    ['https', '::', 'IPv6', 443, 'https://localhost'],
    ['http', '127.0.0.1', 'IPv4', 443, 'http://localhost:443'],
    ['https', '192.0.2.1', 'IPv4', 80, 'https://192.0.2.1:80'],
    ['https', '2001:db8::1', 'IPv6', 443, 'https://[2001:db8::1]'],
    ['http', '2001:db8::1', 'IPv6', 8080, 'http://[2001:db8::1]:8080'],
  ] as const) {
    assert.equal(listenUrl(scheme, { address, family, port }), expected);
  }
});

suite('listening on a unix socket', () => {
  async function listenAt(t: TestContext, path: string): Promise<string> {
    const server = createServer();
    t.after(() => server.close());
    return (await listen(server, { kind: 'unix', path })).address;
  }

  test('replaces a socket that no process serves, and no other file', async (t) => {
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
