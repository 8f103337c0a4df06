import { once } from 'node:events';
import http, { type RequestListener, type Server } from 'node:http';
import tls from 'node:tls';
import { duplexPair } from 'node:stream';
import net, { type AddressInfo, type Socket } from 'node:net';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import type { TestContext } from 'node:test';
import type { Cleaning } from '../../folder.ts';
import { flags, frame, readFrame } from '../server/h2/raw-client.ts';
import { parseCidr } from '../../../src/core/values/network/cidr.ts';
import {
  createDialler,
  type Dialler,
  type OutboundRequest,
} from '../../../src/core/outbound/dialler.ts';

/** The private network that the tests allow. */
export const loopback = ['127.0.0.0/8'].flatMap((text) => parseCidr(text) ?? []);

/** One address of that network. Another loopback address counts as a refused network. */
export const oneAddress = ['127.0.0.1'].flatMap((text) => parseCidr(text) ?? []);

/** A dialler for a test. Tests of timeouts set their own; the defaults end a test that hangs. */
export function testDialler(
  t: TestContext,
  options: Partial<Parameters<typeof createDialler>[0]> = {},
): Dialler {
  const dialler = createDialler({
    allowPrivate: loopback,
    connectTimeoutMs: 20_000,
    timeoutMs: 20_000,
    ...options,
  });
  t.after(() => dialler.close());
  return dialler;
}

/** A request, by default a GET of `/`. */
export function outbound(
  origin: string,
  options: Partial<OutboundRequest> & { readonly controller?: AbortController } = {},
): OutboundRequest {
  const { controller = new AbortController(), ...others } = options;
  return {
    origin,
    target: '/',
    method: 'GET',
    fields: [],
    body: undefined,
    signal: controller.signal,
    ...others,
  };
}

/** Starts an HTTP server; resolves to its origin. */
export async function httpSource(
  t: Cleaning,
  listener: RequestListener,
  host = '127.0.0.1',
): Promise<{ readonly origin: string; readonly port: number; readonly server: Server }> {
  const server = http.createServer(listener).listen(0, host);
  await once(server, 'listening');
  t.after(async () => {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  });
  const { port } = server.address() as AddressInfo;
  return { origin: `http://${host}:${port}`, port, server };
}

/** Starts a server that sends given bytes after each header section, or runs a function. */
export async function rawSource(
  t: TestContext,
  answer: string | Buffer | ((socket: Socket, request: number) => void),
): Promise<{ readonly origin: string; readonly port: number }> {
  let requests = 0;
  const sockets = new Set<Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
    let head = '';
    socket.on('data', (chunk) => {
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      head = '';
      if (typeof answer === 'function') answer(socket, (requests += 1));
      else socket.end(answer);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(async () => {
    server.close();
    for (const socket of sockets) socket.destroy();
    await once(server, 'close');
  });
  const { port } = server.address() as AddressInfo;
  return { origin: `http://127.0.0.1:${port}`, port };
}

/** Starts a server of HTTP/2 in the clear that sends raw frames for each request. */
export async function rawHttp2Source(
  t: TestContext,
  answer: (socket: Socket, stream: number) => void,
): Promise<number> {
  const sockets = new Set<Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.write(frame('SETTINGS', 0, 0));
    let unread = Buffer.alloc(0);
    let isGreeted = false;
    socket.on('data', (chunk: Buffer) => {
      unread = Buffer.concat([unread, chunk]);
      if (!isGreeted) {
        if (unread.length < 24) return;
        unread = unread.subarray(24);
        isGreeted = true;
      }
      for (let next = readFrame(unread); next !== undefined; next = readFrame(unread)) {
        unread = unread.subarray(9 + next.payload.length);
        const isAck = (next.flags & flags.ACK) !== 0;
        if (next.type === 'SETTINGS' && !isAck) socket.write(frame('SETTINGS', flags.ACK, 0));
        if (next.type === 'PING' && !isAck) socket.write(frame('PING', flags.ACK, 0, next.payload));
        const isEnd = next.type === 'HEADERS' || next.type === 'DATA';
        if (isEnd && (next.flags & flags.END_STREAM) !== 0) answer(socket, next.stream);
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(async () => {
    server.close();
    for (const socket of sockets) socket.destroy();
    await once(server, 'close');
  });
  return (server.address() as AddressInfo).port;
}

/**
 * Starts a TLS server with the name localhost that sends given bytes after each header section, and
 * closes the connection: with a close_notify, or TCP only.
 */
export async function tlsSource(
  t: TestContext,
  bytes: string | Buffer,
  ending: 'close_notify' | 'TCP alone',
): Promise<{ readonly origin: string; readonly ca: readonly string[] }> {
  const certificate = selfSigned('localhost');
  const server = net.createServer((socket) => {
    const [inside, outside] = duplexPair();
    socket.on('error', () => undefined).on('data', (chunk) => outside.write(chunk));
    outside.on('data', (chunk) => socket.write(chunk)).on('end', () => socket.end());
    const secure = new tls.TLSSocket(inside, { isServer: true, ...certificate });
    secure
      .on('error', () => undefined)
      .on('data', (chunk) => {
        if (!chunk.toString('latin1').endsWith('\r\n\r\n')) return;
        if (ending === 'close_notify') secure.end(bytes);
        else secure.write(bytes, () => socket.end());
      });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => once(server.close(), 'close'));
  const { port } = server.address() as AddressInfo;
  return { origin: `https://localhost:${port}`, ca: [certificate.cert] };
}

/** A key and its self-signed certificate (X.509 v1, RFC 5280) for a common name. */
export function selfSigned(commonName: string): { readonly key: string; readonly cert: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ecdsaWithSha256 = der(0x30, Buffer.from('06082a8648ce3d040302', 'hex'));
  const name = der(
    0x30,
    der(0x31, der(0x30, Buffer.from('0603550403', 'hex'), der(0x0c, Buffer.from(commonName)))),
  );
  const validity = der(
    0x30,
    der(0x17, Buffer.from('200101000000Z')),
    der(0x18, Buffer.from('21200101000000Z')),
  );
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const serial = createHash('sha256').update(spki).digest().subarray(0, 8);
  const tbs = der(
    0x30,
    der(0x02, Buffer.from([1]), serial),
    ...[ecdsaWithSha256, name, validity, name, spki],
  );
  const signature = der(0x03, Buffer.from([0]), sign('sha256', tbs, privateKey));
  const body = der(0x30, tbs, ecdsaWithSha256, signature).toString('base64');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    cert: `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`,
  };
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80 ? [length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
