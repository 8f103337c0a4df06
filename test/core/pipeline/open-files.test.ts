import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { suite, test, type TestContext } from 'node:test';
import { serverFolder, startServed, type OpenFiles, type Served } from '../../process.ts';
import { AnswerReader } from './answers.ts';

const files = { 'site/a.txt': 'a', 'site/b.txt': 'b' };

/** A server with few file descriptors, some of them in use. */
async function start(t: TestContext, openFiles: OpenFiles): Promise<Served> {
  const text = '[log]\nformat = json\n[disk.site]\nroot = site\n';
  const { iniFile } = await serverFolder(t, text, files);
  return startServed(t, iniFile, { openFiles });
}

/** A connection with its response; undefined if it was closed instead. */
async function ask(
  t: TestContext,
  { port }: Served,
  path: string,
): Promise<{ readonly socket: Socket; readonly status: string } | undefined> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  t.after(() => socket.destroy());
  return askOn(socket, path);
}

async function askOn(
  socket: Socket,
  path: string,
): Promise<{ readonly socket: Socket; readonly status: string } | undefined> {
  const reader = new AnswerReader(socket);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  try {
    const { statusLine, fields } = await reader.next();
    const closes = fields.includes('Connection: close') ? ', closed' : '';
    return { socket, status: statusLine.slice('HTTP/1.1 '.length) + closes };
  } catch {
    return undefined;
  }
}

/** Opens a number of connections with a request each; returns those that were not closed. */
async function keep(t: TestContext, served: Served, count: number): Promise<readonly Socket[]> {
  const asked = Array.from({ length: count }, () => ask(t, served, '/none'));
  return (await Promise.all(asked)).flatMap((one) => (one === undefined ? [] : [one.socket]));
}

function linesWith(served: Served, text: string): readonly string[] {
  return served
    .out()
    .split('\n')
    .filter((line) => line.includes(text));
}

suite('a server with few file descriptors', () => {
  test('accepts no more connections than it has descriptors for', async (t) => {
    const served = await start(t, { max: 160, taken: 0 });
    const kept = await keep(t, served, 60);
    // Some are reserved; a connection needs two.
    assert.equal(kept.length, 48);
    const [line = '', ...more] = linesWith(served, '"limit":"connections"');
    assert.match(
      line,
      /"why":"there are file descriptors for 48: raise LimitNOFILE= or ulimit -n"/,
    );
    assert.deepEqual(more, []);
    const [first] = kept;
    assert.ok(first !== undefined);
    assert.equal((await askOn(first, '/a.txt'))?.status, '200 OK');
  });

  test('closes idle connections when none is left, with one line in the log', async (t) => {
    // The process and these leave fewer descriptors than the connections need.
    const served = await start(t, { max: 160, taken: 95 });
    for (const path of ['/a.txt', '/b.txt']) {
      const [first, ...others] = await keep(t, served, 60);
      assert.ok(first !== undefined && others.length > 0 && others.length < 48);
      const closed = others
        .filter((socket) => !socket.destroyed)
        .map((socket) => once(socket, 'close'));
      assert.equal((await askOn(first, path))?.status, '503 Service Unavailable, closed');
      await Promise.all(closed);
      assert.equal((await ask(t, served, path))?.status, '200 OK');
    }
    assert.equal(linesWith(served, '"limit":"open_files"').length, 1, served.out());
    assert.deepEqual(linesWith(served, 'EMFILE'), []);
  });
});
