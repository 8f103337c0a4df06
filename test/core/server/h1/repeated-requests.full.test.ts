import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { startSite, type TestSite } from '../../../harness.ts';
import { rawSource } from '../../outbound/sources.ts';
import type { RawAnswer } from '../../pipeline/answers.ts';
import { openUsed } from '../../pipeline/raw-connection.ts';

/** Sends the response of a source to each request for a page. */
type SendAnswer = (socket: Socket, request: number) => void;

interface Fetched extends TestSite {
  /** Sends the same request again, over the same connection. */
  readonly again: () => Promise<RawAnswer>;
  readonly client: Awaited<ReturnType<typeof openUsed>>;
  readonly request: string;
}

/** Enough repetitions that the server prepares a response, and sends it a few times. */
const times = 6;

/** A site with a page of a source, and a client of it. */
async function startFetched(
  t: TestContext,
  sendAnswer: SendAnswer,
  { cache = '1MiB', asks = '', rule = {} }: { cache?: string; asks?: string; rule?: object } = {},
): Promise<Fetched> {
  const { origin } = await rawSource(t, sendAnswer);
  const site = await startSite(t, {
    ini: `[disk.site]\nroot = site\n[fetch]\nallow_private = 127.0.0.0/8\ncache = ${cache}\n`,
    files: { 'site/index.html': '' },
    rules: [
      { path: '/far/*', kind: 'content.fetch', enginedata: { source: `${origin}/*` }, ...rule },
    ],
  });
  const client = await openUsed(t, { port: site.port, host: '127.0.0.1' });
  const request = `GET /far/a HTTP/1.1\r\nHost: localhost\r\n${asks}\r\n`;
  return { ...site, client, request, again: () => client.ask(request) };
}

/** A response without Date, which changes each second. */
function lasting({ fields, ...answer }: RawAnswer) {
  return { ...answer, fields: fields.filter((line) => !/^date:/i.test(line)) };
}

const text = 'some text '.repeat(300);
const long = 'x'.repeat(200_000);
const [date, other] = ['Sun, 22 Nov 2026 20:00:00 GMT', 'Sun, 22 Nov 2026 21:00:00 GMT'];

suite('a repeated request for a fetched page gets the same response', () => {
  const html = 'Content-Type: text/html\r\nCache-Control: no-store\r\n';
  const cases: readonly (readonly [what: string, answer: string, more?: object])[] = [
    ['with a date', `200 OK\r\nDate: ${date}\r\n${html}Content-Length: 4\r\n\r\nabcd`],
    ['without one', `200 OK\r\n${html}Content-Length: 4\r\n\r\nabcd`],
    ['with two', `200 OK\r\nDate: ${date}\r\nDate: ${other}\r\n${html}Content-Length: 1\r\n\r\na`],
    [
      'with all that is rewritten',
      '302 Found\r\nLocation: /b\r\nSet-Cookie: a=b; Path=/\r\nSet-Cookie: c=d\r\nLink: </c>; rel=next\r\n' +
        'Content-Location: /d\r\nRefresh: 5; url=/e\r\nKeep-Alive: timeout=9\r\nProxy-Status: s\r\n' +
        `Proxy-Authenticate: Basic\r\nServer: x\r\nDate: ${date}\r\nContent-Length: 1\r\n\r\na`,
    ],
    ['that could be compressed', `200 OK\r\n${html}Content-Length: ${text.length}\r\n\r\n${text}`],
    [
      'that is compressed',
      `200 OK\r\nDate: ${date}\r\n${html}Content-Length: ${text.length}\r\n\r\n${text}`,
      { asks: 'Accept-Encoding: gzip\r\n' },
    ],
    ['with nothing in it', `204 No Content\r\nDate: ${date}\r\n\r\n`],
    ['that nobody has asked for', `304 Not Modified\r\nETag: "a"\r\nDate: ${date}\r\n\r\n`],
    [
      'of which a part comes',
      '206 Partial Content\r\nContent-Range: bytes 0-1/9\r\nCache-Control: no-store\r\n' +
        `Date: ${date}\r\nContent-Length: 2\r\n\r\nab`,
    ],
    ['that is not there', `404 Not Found\r\nDate: ${date}\r\n${html}Content-Length: 1\r\n\r\na`],
    ['that has failed', `500 Oh\r\nDate: ${date}\r\n${html}Content-Length: 1\r\n\r\na`],
    [
      'under a status of its own',
      `200 OK\r\nDate: ${date}\r\n${html}Content-Length: 1\r\n\r\na`,
      { rule: { httpresponse: 410 } },
    ],
    [
      'under a status without content',
      `200 OK\r\nDate: ${date}\r\n${html}Content-Length: 1\r\n\r\na`,
      { rule: { httpresponse: 204 } },
    ],
    [
      'under a status that has nothing to show',
      `200 OK\r\nDate: ${date}\r\n${html}Content-Length: 1\r\n\r\na`,
      { rule: { httpresponse: 205 } },
    ],
    [
      'for one alone',
      `200 OK\r\nDate: ${date}\r\nCache-Control: private\r\nETag: "a"\r\nContent-Length: 1\r\n\r\na`,
    ],
    ['that varies', `200 OK\r\nDate: ${date}\r\nVary: *\r\nContent-Length: 1\r\n\r\na`],
    [
      'in chunks',
      `200 OK\r\nDate: ${date}\r\n${html}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    ],
    [
      'with trailers',
      `200 OK\r\nDate: ${date}\r\n${html}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-T: t\r\n\r\n`,
    ],
    [
      'that is long',
      `200 OK\r\nDate: ${date}\r\n${html}Content-Length: ${long.length}\r\n\r\n${long}`,
    ],
  ];
  for (const cache of ['0', '1MiB']) {
    for (const [what, answer, more] of cases) {
      test(`${what}, cache = ${cache}`, async (t) => {
        const site = await startFetched(t, (socket) => socket.write(`HTTP/1.1 ${answer}`), {
          cache,
          ...more,
        });
        const first = lasting(await site.again());
        for (let time = 1; time < times; time += 1) {
          assert.deepEqual(lasting(await site.again()), first, `time ${time + 1}`);
        }
      });
    }
  }
});

suite('a page that is fetched repeatedly', () => {
  test('is the current response of its source each time', async (t) => {
    const said = (request: number) => {
      // Two equal responses, then another one.
      const kind = Math.floor(request / 2) % 3;
      const content = `${kind}${kind === 2 ? 'long' : ''}`;
      const status = ['200 OK', '404 Not Found', '200 OK'][kind];
      const field = kind === 1 ? 'X-Kind: one\r\nSet-Cookie: a=b; Path=/' : `X-Kind: k${kind}`;
      return { content, status, field };
    };
    const site = await startFetched(t, (socket, request) => {
      const { content, status, field } = said(request);
      const fields = `Date: ${date}\r\nCache-Control: no-store\r\n${field}`;
      socket.write(
        `HTTP/1.1 ${status}\r\n${fields}\r\nContent-Length: ${content.length}\r\n\r\n${content}`,
      );
    });
    for (let request = 1; request < 4 * times; request += 1) {
      const { statusLine, fields, content } = await site.again();
      const expected = said(request);
      assert.deepEqual([statusLine, content], [`HTTP/1.1 ${expected.status}`, expected.content]);
      const [kind] = expected.field.split('\r\n');
      assert.ok(fields.includes(kind ?? ''), fields.join());
      const cookies = fields.filter((line) => line.startsWith('Set-Cookie'));
      assert.equal(cookies.length, expected.field.includes('Set-Cookie') ? 1 : 0);
    }
  });

  test('is cached if its source allows that, and then fetched once for many', async (t) => {
    const asked: Socket[] = [];
    let isHeld = false;
    const kept = 'HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\n\r\na';
    const site = await startFetched(t, (socket, request) => {
      asked.push(socket);
      if (!isHeld) socket.write(request < times ? kept.replace('max-age=60', 'no-store') : kept);
    });
    let { fields } = await site.again();
    while (!fields.some((line) => /^cache-status: waymark; hit/i.test(line))) {
      ({ fields } = await site.again());
    }
    assert.ok(asked.length >= times);
    await site.call('cache.purge', { all: true });
    isHeld = true;
    const before = asked.length;
    const other = await openUsed(t, { port: site.port, host: '127.0.0.1' });
    const both = [site.again(), other.ask(site.request)];
    // Requests on another connection: when the server answers these, it has read both above.
    while (asked.length === before) await site.call('server.status', {});
    await site.call('server.status', {});
    assert.equal(asked.length, before + 1);
    asked.at(-1)?.write(kept);
    for (const { content } of await Promise.all(both)) assert.equal(content, 'a');
  });

  test('changes as soon as its rule changes', async (t) => {
    const says = (content: string) => (socket: Socket) =>
      socket.write(
        `HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 3\r\n\r\n${content}`,
      );
    const site = await startFetched(t, says('old'));
    const { origin } = await rawSource(t, says('new'));
    for (let time = 0; time < times; time += 1) {
      assert.equal((await site.again()).content, 'old');
    }
    const { data } = await site.call('userinterface.list', {});
    const [{ id } = {}] = (data as { readonly rows: readonly { readonly id?: string }[] }).rows;
    await site.call('userinterface.edit', { id, enginedata: { source: `${origin}/*` } });
    for (let time = 0; time < times; time += 1) {
      assert.equal((await site.again()).content, 'new');
    }
    await site.call('userinterface.edit', { id, path: '/elsewhere/*' });
    assert.match((await site.again()).statusLine, /404/);
    await site.call('userinterface.edit', { id, path: '/far/*' });
    for (let time = 0; time < times; time += 1) {
      assert.equal((await site.again()).content, 'new');
    }
    await site.call('userinterface.insert', { path: '/far/a', kind: 'content', content: 'page' });
    assert.equal((await site.again()).content, 'page');
  });

  test('is replaced by a new file as soon as the server looks for one', async (t) => {
    const site = await startFetched(t, (socket) =>
      socket.write('HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 3\r\n\r\nfar'),
    );
    for (let time = 0; time < times; time += 1) {
      assert.equal((await site.again()).content, 'far');
    }
    await mkdir(join(site.folder, 'site/far'));
    await writeFile(join(site.folder, 'site/far/a'), 'a file');
    let { content } = await site.again();
    while (content === 'far') ({ content } = await site.again());
    assert.equal(content, 'a file');
  });

  test('fails if its source fails, with an event for its rule', async (t) => {
    const site = await startFetched(t, (socket, request) => {
      if (request >= times) socket.destroy();
      else socket.write('HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 1\r\n\r\na');
    });
    let { statusLine } = await site.again();
    while (statusLine.includes(' 200 ')) ({ statusLine } = await site.again());
    assert.match(statusLine, / 502 /);
    const { data } = await site.call('userinterface.list', {});
    const [{ id = '' } = {}] = (data as { readonly rows: readonly { readonly id?: string }[] })
      .rows;
    assert.match(site.logged(), new RegExp(` 502 GET localhost/far/a .*rule:${id}`));
    const told = async () => {
      const { data: events } = await site.call('event.list', { type: 'error.detected' });
      return (events as { readonly rows: readonly unknown[] }).rows.length;
    };
    while ((await told()) === 0);
  });

  test('has the interim responses of its source', async (t) => {
    const site = await startFetched(t, (socket, request) =>
      socket.write(
        `HTTP/1.1 103 Early Hints\r\nLink: </${request}.css>\r\n\r\n` +
          'HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 1\r\n\r\na',
      ),
    );
    for (let time = 1; time <= times; time += 1) {
      const { ahead, content } = await site.again();
      assert.deepEqual([ahead.length, content], [1, 'a']);
      assert.match(ahead[0] ?? '', new RegExp(`Link: </(?:far/)?${time}.css>`));
    }
  });

  test('is aborted when its client disconnects', async (t) => {
    const held = Promise.withResolvers<Socket>();
    const site = await startFetched(t, (socket, request) => {
      if (request >= times) held.resolve(socket);
      else socket.write('HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 1\r\n\r\na');
    });
    for (let time = 1; time < times; time += 1) await site.again();
    site.client.socket.write(site.request);
    const source = await held.promise;
    site.client.socket.destroy();
    await once(source, 'close');
  });
});
