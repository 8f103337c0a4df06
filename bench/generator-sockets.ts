// A load generator of websockets over TLS: each connection opens one, over HTTP/1.1 (RFC 6455) or
// over HTTP/2 (RFC 8441), sends a message when the one before was answered, and closes after the
// last; then a new connection begins. Its argument is a LoadOrder as JSON; it prints a LoadResult,
// whose requests are the websockets, without the CPU time.
import { connect, type TLSSocket } from 'node:tls';
import { beginning, flags, frame, literal, readFrames, types } from './http2-frames.ts';
import { printResult } from './generator-result.ts';
import type { LoadOrder } from './load.ts';
import { socketMessage, socketMessages } from './scenarios.ts';

const order = JSON.parse(process.argv[2] ?? '') as LoadOrder;
const { hostname, port, host, pathname } = new URL(order.url);
const isHttp2 = order.transport === 'h2-socket';
/** The stream of the websocket, and the first byte of a block that begins with status 200. */
const stream = 1;
const status200 = 0x88;

const message = clientFrame(0x81, socketMessage);
const closing = clientFrame(0x88, '');

const latenciesMs: number[] = [];
let [bytes, refused, broken, over] = [0, 0, 0, false];
const started = performance.now();
const sockets = new Set<TLSSocket>();
for (let count = 0; count < order.connections; count += 1) open();
setTimeout(finish, order.seconds * 1_000);

function open(): void {
  const begunAt = performance.now();
  const options = { host: hostname, port: Number(port), rejectUnauthorized: false };
  const socket = connect({ ...options, ...(isHttp2 && { ALPNProtocols: ['h2'] }) });
  sockets.add(socket);
  socket.setNoDelay(true);
  const tunnel = isHttp2 ? overStream(socket) : afterUpgrade(socket);
  let answers = 0;
  let unread: Buffer = Buffer.alloc(0);
  const received = (chunk: Buffer): void => {
    bytes += chunk.length;
    unread = readMessages(Buffer.concat([unread, chunk]), () => {
      answers += 1;
      if (answers < socketMessages) {
        tunnel.send(message);
        return;
      }
      latenciesMs.push(performance.now() - begunAt);
      tunnel.end(closing);
    });
  };
  socket.on('data', (chunk: Buffer) => {
    tunnel.read(chunk, received);
  });
  socket.on('error', () => {
    if (!over) broken += 1;
  });
  socket.on('close', () => {
    sockets.delete(socket);
    if (!over) open();
  });
}

/** A websocket's way over a connection. */
interface Tunnel {
  /** Reads bytes of the connection; sends the first message when the websocket is open. */
  read(chunk: Buffer, received: (bytes: Buffer) => void): void;
  send(bytes: Buffer): void;
  end(bytes: Buffer): void;
}

function afterUpgrade(socket: TLSSocket): Tunnel {
  let head: string | undefined = '';
  socket.on('secureConnect', () => {
    socket.write(
      `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    );
  });
  return {
    read(chunk, received) {
      if (head === undefined) {
        received(chunk);
        return;
      }
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      if (!head.startsWith('HTTP/1.1 101 ')) refused += 1;
      head = undefined;
      socket.write(message);
    },
    send: (sent) => socket.write(sent),
    end: (last) => socket.end(last),
  };
}

function overStream(socket: TLSSocket): Tunnel {
  let unread: Buffer = Buffer.alloc(0);
  const data = (content: Buffer, flag = 0): Buffer => frame(types.data, flag, stream, content);
  socket.on('secureConnect', () => socket.write(beginning));
  return {
    read(chunk, received) {
      unread = readFrames(Buffer.concat([unread, chunk]), (type, flag, _stream, payload) => {
        const isAck = (flag & flags.ack) !== 0;
        if (type === types.settings && !isAck) {
          // Only the settings of the server say that it takes an extended CONNECT (RFC 8441 §3).
          socket.write(frame(types.settings, flags.ack, 0));
          socket.write(frame(types.headers, flags.endHeaders, stream, connectBlock()));
        } else if (type === types.ping && !isAck) {
          socket.write(frame(types.ping, flags.ack, 0, payload));
        } else if (type === types.headers) {
          if (payload[0] !== status200) refused += 1;
          socket.write(data(message));
        } else if (type === types.data) received(payload);
        else if (type === types.reset || type === types.goAway) socket.destroy();
      });
    },
    send: (sent) => socket.write(data(sent)),
    end: (last) => socket.end(data(last, flags.endStream)),
  };
}

function connectBlock(): Buffer {
  return Buffer.concat([
    literal(0, ':method', 'CONNECT'),
    literal(0, ':protocol', 'websocket'),
    literal(0, ':scheme', 'https'),
    literal(0, ':path', pathname),
    literal(0, ':authority', host),
    literal(0, 'sec-websocket-version', '13'),
  ]);
}

/** A short frame of a client, with a mask of zeros (RFC 6455 §5.2). */
function clientFrame(first: number, content: string): Buffer {
  const head = Buffer.from([first, 0x80 | content.length, 0, 0, 0, 0]);
  return Buffer.concat([head, Buffer.from(content, 'latin1')]);
}

/** Calls `take` for each whole message of a server, the text of which is short; returns the rest. */
function readMessages(given: Buffer, take: () => void): Buffer {
  let at = 0;
  while (given.length - at >= 2) {
    const end = at + 2 + (given[at + 1] ?? 0);
    if (end > given.length) break;
    if (given[at] === 0x81) take();
    at = end;
  }
  return given.subarray(at);
}

function finish(): void {
  over = true;
  printResult({ startedMs: started, latenciesMs, bytes, refused, broken });
  for (const socket of sockets) socket.destroy();
}
