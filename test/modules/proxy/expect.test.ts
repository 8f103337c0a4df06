import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { suite, test, type TestContext } from 'node:test';
import { isForbiddenTrailer } from '../../../src/modules/proxy/request-fields.ts';
import { startSite } from '../../harness.ts';
import { httpSource, rawSource } from '../../core/outbound/sources.ts';

/** Connects to a site; `until` reads until the text has a part. */
function client(t: TestContext, port: number) {
  const socket: Socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  let got = '';
  socket.on('data', (chunk) => (got += chunk.toString('latin1')));
  return {
    socket,
    got: () => got,
    until: async (part: string): Promise<void> => {
      while (!got.includes(part)) await once(socket, 'data');
    },
  };
}

const head = (more = '') =>
  `POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n${more}\r\n`;

suite('Expect: 100-continue', () => {
  test('travels to the application, whose 100 the client gets before it sends', async (t) => {
    const { origin, server } = await httpSource(t, (request, response) => {
      void text(request).then((body) => response.end(`got ${body}`));
    });
    const expected = once(server, 'checkContinue') as Promise<
      [http.IncomingMessage, http.ServerResponse]
    >;
    const site = await startSite(t, { ini: `[proxy.app]\nsource = ${origin}\n` });
    const { socket, got, until } = client(t, site.port);
    socket.write(head());
    const [request, response] = await expected;
    assert.equal(request.headers.expect, '100-continue');
    assert.equal(got(), '');
    response.writeContinue();
    await until('HTTP/1.1 100 Continue\r\n\r\n');
    socket.write('hello');
    response.end(`got ${await text(request)}`);
    await until('got hello');
    assert.match(got(), /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
  });

  test('is refused by the application before content moves', async (t) => {
    const { origin, server } = await httpSource(t, () => undefined);
    let bytes = 0;
    server.on('checkContinue', (request: http.IncomingMessage, response: http.ServerResponse) => {
      request.on('data', (chunk: Buffer) => (bytes += chunk.length));
      response.writeHead(401, { 'content-length': '4' }).end('stop');
    });
    const site = await startSite(t, { ini: `[proxy.app]\nsource = ${origin}\n` });
    const { socket, got } = client(t, site.port);
    socket.write(head());
    await once(socket, 'end');
    assert.match(got(), /^HTTP\/1\.1 401 /);
    assert.ok(got().endsWith('stop'));
    assert.equal(bytes, 0);
  });

  test('gets 100 from Waymark if the application, of HTTP/1.0, ignores it', async (t) => {
    const { origin } = await rawSource(t, (socket) => {
      socket.once('data', (chunk) => {
        socket.end(`HTTP/1.0 200 OK\r\n\r\ngot ${chunk.toString()}`);
      });
    });
    const site = await startSite(t, { ini: `[proxy.app]\nsource = ${origin}\n` });
    const { socket, until } = client(t, site.port);
    socket.write(head());
    await until('100 Continue');
    socket.write('hello');
    await until('got hello');
  });
});

suite('trailers of a request', () => {
  test('reach the application, without those that must not be trailers', async (t) => {
    const seen = Promise.withResolvers<http.IncomingMessage>();
    const { origin } = await httpSource(t, (request, response) => {
      void text(request).then(() => {
        seen.resolve(request);
        response.end('ok');
      });
    });
    const site = await startSite(t, { ini: `[proxy.app]\nsource = ${origin}\n` });
    const sent = http.request(`${site.url}/a`, {
      method: 'POST',
      headers: { trailer: 'X-Sum, Link' },
    });
    sent.write('hello');
    sent.addTrailers({ 'X-Sum': '42', Link: '<a>' });
    sent.end();
    const [response] = (await once(sent, 'response')) as [http.IncomingMessage];
    assert.equal(await text(response), 'ok');
    const request = await seen.promise;
    assert.deepEqual(request.rawTrailers, ['X-Sum', '42']);
    assert.equal(request.headers.trailer, 'X-Sum, Link');
    assert.equal(request.headers['transfer-encoding'], 'chunked');
  });

  for (const server of ['', 'trust_proxy = 127.0.0.1\n']) {
    test(`never say who the client is, ${server || 'without a trusted proxy'}`, async (t) => {
      const seen = Promise.withResolvers<http.IncomingMessage>();
      const { origin } = await httpSource(t, (request, response) => {
        void text(request).then(() => {
          seen.resolve(request);
          response.end('ok');
        });
      });
      const pass = 'x_user, x.roles, remote_user, cookie, authorization, x_forwarded_for';
      const site = await startSite(t, {
        server,
        ini:
          '[auth]\nuser_header = X-User\nroles_header = X-Roles\n' +
          '[geo]\ncountry_header = X-Land\nregion_header = X-Region\ncity_header = X-City\n' +
          '[fetch]\nallow_private = 127.0.0.0/8\n',
        rules: [
          {
            path: '/*',
            kind: 'content.fetch',
            enginedata: { source: `${origin}/*`, pass: pass.split(', '), methods: ['POST'] },
          },
        ],
      });
      const identity = [
        ...['X-User', 'x_user', 'X.Roles', 'X-Land', 'X-Region', 'X-City', 'Remote-User'],
        ...['Remote_User', 'X-Remote-Groups', 'X_Forwarded_For', 'X-Real-IP'],
      ];
      const lines = [...identity, 'X-Sum'].map((name) => `${name}: root\r\n`).join('');
      const answer = await site.raw(
        'POST /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTrailer: X-User\r\n' +
          `Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n${lines}\r\n`,
      );
      assert.match(answer, /^HTTP\/1\.1 200 /);
      assert.deepEqual((await seen.promise).rawTrailers, ['X-Sum', 'root']);
    });
  }

  test('never say it over HTTP/2 either, whose connections take any trailer', () => {
    const names =
      'authorization apikey cookie forwarded x-forwarded-for x_forwarded_host remote_user';
    for (const name of names.split(' ')) assert.ok(isForbiddenTrailer(name), name);
  });
});
