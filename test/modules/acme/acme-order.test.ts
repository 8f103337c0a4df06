import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { type RequestListener, createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type TestContext, suite, test } from 'node:test';
import {
  OrderError,
  challengesFor,
  orderCertificate,
} from '../../../src/modules/acme/acme-order.ts';
import { acmeAnswerBytesMax } from '../../../src/modules/acme/acme-transport.ts';
import { createAuthority } from '../../certificates.ts';

const authority = createAuthority();

/** Orders from an ACME server with these answers, and resolves to the error of the order. */
async function orderError(t: TestContext, answer: RequestListener): Promise<OrderError> {
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
    { saveChallenge: () => Promise.resolve(), signal: new AbortController().signal },
  );
  const error: unknown = await order.catch((thrown: unknown) => thrown);
  assert.ok(error instanceof OrderError);
  return error;
}

suite('an order', () => {
  test('uses https only, whatever URLs the ACME server names', async (t) => {
    const open = createServer().listen(0, '127.0.0.1');
    let connections = 0;
    open.on('connection', () => (connections += 1));
    t.after(() => open.close());
    await once(open, 'listening');
    const newNonce = `http://127.0.0.1:${(open.address() as AddressInfo).port}/nonce`;
    const { message } = await orderError(t, (_, response) => {
      response.end(JSON.stringify({ newNonce, newAccount: newNonce }));
    });
    assert.match(message, /names http:\/\/127\.0\.0\.1:\d+, which is not an https URL\.$/);
    assert.equal(connections, 0);
  });

  test('does not connect to a private address that the ACME server names', async (t) => {
    const { message } = await orderError(t, (_, response) => {
      response.end(JSON.stringify({ newNonce: 'https://169.254.169.254/', newAccount: 'x' }));
    });
    assert.match(
      message,
      /^169\.254\.169\.254: 169\.254\.169\.254 \(metadata\) is not in allow_private/,
    );
  });

  test('follows no redirect, and stops reading an endless response', async (t) => {
    const moved = await orderError(t, ({ url }, response) => {
      response.writeHead(url === '/dir' ? 302 : 200, { Location: '/other' }).end('{}');
    });
    assert.match(moved.message, /newAccount|newNonce|no data/);
    const endless = await orderError(t, (_, response) => {
      const chunk = Buffer.alloc(65_536, ' ');
      const write = (): void => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', write);
      write();
    });
    assert.match(endless.message, /^127\.0\.0\.1:\d+: the response is too large$/);
    assert.ok(acmeAnswerBytesMax <= 1_048_576);
  });

  test('reports the Retry-After of the ACME server', async (t) => {
    const { retryAfter, message } = await orderError(t, (_, response) => {
      response.writeHead(503, { 'Retry-After': '77' }).end();
    });
    assert.equal(retryAfter, '77');
    assert.match(message, /503/);
  });

  test('ends at once when its signal aborts', async () => {
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
    const saveChallenge = () => Promise.resolve();
    await assert.rejects(orderCertificate(order, { saveChallenge, signal }), /no more/);
  });
});

suite('the preferred challenge of a server that listens', () => {
  const tcp = (scheme: 'http' | 'https', port: number) =>
    ({ kind: 'tcp', scheme, host: '', port }) as const;
  const table = [
    ['without TLS on port 80', [tcp('http', 80), tcp('https', 443)], ['http-01', 'tls-alpn-01']],
    ['with TLS on port 443', [tcp('http', 8080), tcp('https', 443)], ['tls-alpn-01', 'http-01']],
    [
      'on other ports, behind a router',
      [tcp('http', 8080), tcp('https', 8443)],
      ['http-01', 'tls-alpn-01'],
    ],
    ['with TLS only', [tcp('https', 8443)], ['tls-alpn-01']],
    [
      'with TLS and on a unix socket',
      [tcp('https', 443), { kind: 'unix', path: '/x' }],
      ['tls-alpn-01'],
    ],
  ] as const;
  for (const [name, listens, challenges] of table) {
    test(name, () => {
      assert.deepEqual(challengesFor(listens), challenges);
    });
  }
});
