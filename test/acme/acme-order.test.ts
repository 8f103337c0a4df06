import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { suite, test, type TestContext } from 'node:test';
import { acmeAnswerBytesMax } from '../../src/acme/limits.ts';
import { challengesFor, orderCertificate, OrderError } from '../../src/acme/acme-order.ts';
import { createAuthority } from '../certificates.ts';

const authority = createAuthority();

/** Orders from an ACME server that answers as it is told, and resolves to why that failed. */
async function whyRefused(t: TestContext, answer: RequestListener): Promise<OrderError> {
  const issuer = await authority;
  const pair = await issuer.issue(['127.0.0.1']);
  const server = createTlsServer(pair, answer).listen(0, '127.0.0.1');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const order = orderCertificate(
    {
      directory: `https://127.0.0.1:${(server.address() as AddressInfo).port}/dir`,
      email: undefined,
      binding: undefined,
      ca: issuer.cert,
      allowPrivate: ['127.0.0.1'],
      accountKey: privateKey.export({ type: 'pkcs8', format: 'pem' }),
      host: 'shop.example',
      challenges: ['http-01'],
    },
    { present: () => Promise.resolve(), signal: new AbortController().signal },
  );
  const error: unknown = await order.catch((thrown: unknown) => thrown);
  assert.ok(error instanceof OrderError);
  return error;
}

suite('an order', () => {
  test('goes over https alone, wherever the server sends it', async (t) => {
    const open = createServer().listen(0, '127.0.0.1');
    let asked = 0;
    open.on('connection', () => (asked += 1));
    t.after(() => open.close());
    await once(open, 'listening');
    const newNonce = `http://127.0.0.1:${(open.address() as AddressInfo).port}/nonce`;
    const { message } = await whyRefused(t, (_, response) => {
      response.end(JSON.stringify({ newNonce, newAccount: newNonce }));
    });
    assert.match(message, /^http:\/\/127\.0\.0\.1:\d+ is not asked: it is not https\.$/);
    assert.equal(asked, 0);
  });

  test('does not go to a private address that the server names', async (t) => {
    const { message } = await whyRefused(t, (_, response) => {
      response.end(JSON.stringify({ newNonce: 'https://169.254.169.254/', newAccount: 'x' }));
    });
    assert.match(message, /^169\.254\.169\.254: 169\.254\.169\.254 \(metadata\) is not named by/);
  });

  test('follows no redirect, and reads no answer without end', async (t) => {
    const moved = await whyRefused(t, ({ url }, response) => {
      response.writeHead(url === '/dir' ? 302 : 200, { Location: '/other' }).end('{}');
    });
    assert.match(moved.message, /newAccount|newNonce|no data/);
    const endless = await whyRefused(t, (_, response) => {
      const chunk = Buffer.alloc(65_536, ' ');
      const write = (): void => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', write);
      write();
    });
    assert.match(endless.message, /^127\.0\.0\.1:\d+: the answer is too large$/);
    assert.ok(acmeAnswerBytesMax <= 1_048_576);
  });

  test('tells when it may be made again', async (t) => {
    const { retryAfter, message } = await whyRefused(t, (_, response) => {
      response.writeHead(503, { 'Retry-After': '77' }).end();
    });
    assert.equal(retryAfter, '77');
    assert.match(message, /503/);
  });

  test('that is given up ends at once', async () => {
    const signal = AbortSignal.abort(new Error('no more'));
    const order = {
      directory: 'https://ca.example/dir',
      email: undefined,
      binding: undefined,
      ca: undefined,
      allowPrivate: [],
      accountKey: '',
      host: 'shop.example',
      challenges: [],
    };
    const present = () => Promise.resolve();
    await assert.rejects(orderCertificate(order, { present, signal }), /no more/);
  });
});

suite('a host is shown to be ours', () => {
  const tcp = (scheme: 'http' | 'https', port: number) =>
    ({ kind: 'tcp', scheme, host: '', port }) as const;
  const table = [
    ['in the clear on port 80', [tcp('http', 80), tcp('https', 443)], ['http-01', 'tls-alpn-01']],
    ['over TLS on port 443', [tcp('http', 8080), tcp('https', 443)], ['tls-alpn-01', 'http-01']],
    [
      'in the clear behind a router',
      [tcp('http', 8080), tcp('https', 8443)],
      ['http-01', 'tls-alpn-01'],
    ],
    ['over TLS alone', [tcp('https', 8443)], ['tls-alpn-01']],
    [
      'over TLS beside a unix socket',
      [tcp('https', 443), { kind: 'unix', path: '/x' }],
      ['tls-alpn-01'],
    ],
  ] as const;
  for (const [name, listens, ways] of table) {
    test(name, () => {
      assert.deepEqual(challengesFor(listens), ways);
    });
  }
});
