// A load generator for machines without wrk: raw keep-alive connections, one request in flight on
// each. Its argument is a LoadOrder as JSON; it prints a LoadResult without the CPU time.
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { printResult } from './generator-result.ts';
import type { LoadOrder } from './load.ts';
import { firstVisitor, visitorFields } from './visitors.ts';

const order = JSON.parse(process.argv[2] ?? '') as LoadOrder;
const { hostname, port, host, pathname, search } = new URL(order.url);
const lines = Object.entries(order.headers).map(([name, value]) => `${name}: ${value}\r\n`);
const head = `GET ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\n${lines.join('')}`;
const endOfHeader = Buffer.from('\r\n\r\n');
const lastChunk = Buffer.from('0\r\n\r\n');
let visitor = firstVisitor();

const latenciesMs: number[] = [];
let bytes = 0;
let refused = 0;
let broken = 0;
let over = false;

const started = performance.now();
const sockets = new Set<Socket>();
for (let count = 0; count < order.connections; count += 1) open();
setTimeout(finish, order.seconds * 1000);

function open(): void {
  const where = { host: hostname, port: Number(port), noDelay: true };
  const socket =
    order.transport === 'https'
      ? connectTls({ ...where, rejectUnauthorized: false })
      : connect(where);
  sockets.add(socket);
  let sentAt = 0;
  let unread: Buffer | undefined;
  /**
   * Missing bytes of content, Infinity until the last chunk has come; undefined while the header is
   * being read.
   */
  let missing: number | undefined;
  /**
   * Whether the server closes after this response (Connection: close), as nginx does after 1,000.
   */
  let closing = false;
  const next = (): void => {
    missing = undefined;
    sentAt = performance.now();
    socket.write(requestOfNext());
  };
  const count = (): void => {
    latenciesMs.push(performance.now() - sentAt);
    if (!closing) next();
  };
  socket.on(order.transport === 'https' ? 'secureConnect' : 'connect', next);
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (missing === undefined) {
      const read: Buffer = unread === undefined ? chunk : Buffer.concat([unread, chunk]);
      const end = read.indexOf(endOfHeader);
      unread = end < 0 ? read : undefined;
      if (end < 0) return;
      const header = read.toString('latin1', 0, end);
      closing = /\r\nconnection: *close/i.test(header);
      missing = contentLength(header) - (read.length - end - endOfHeader.length);
    } else {
      missing -= chunk.length;
    }
    // There is one response at a time, so its last chunk is at the end of the data.
    if (missing === Infinity && chunk.subarray(-lastChunk.length).equals(lastChunk)) missing = 0;
    if (missing === 0) count();
  });
  socket.on('error', () => {
    if (!over) broken += 1;
  });
  socket.on('close', () => {
    sockets.delete(socket);
    if (!over) open();
  });
}

function requestOfNext(): string {
  visitor += 1;
  const own = Object.entries(visitorFields(visitor)).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const closing = order.transport === 'connection' ? 'Connection: close\r\n' : '';
  return `${head}${own.join('')}${closing}\r\n`;
}

/** The bytes of content after a header (RFC 9112 §6.3); Infinity for chunks. */
function contentLength(header: string): number {
  const status = header.slice(9, 12);
  if (status >= '400') refused += 1;
  if (status === '304') return 0;
  if (/\r\ntransfer-encoding: *chunked/i.test(header)) return Infinity;
  const field = /\r\ncontent-length: *(\d+)/i.exec(header);
  if (field === null) throw new Error(`an answer without Content-Length: ${header}`);
  return Number(field[1]);
}

function finish(): void {
  over = true;
  printResult({ startedMs: started, latenciesMs, bytes, refused, broken });
  for (const socket of sockets) socket.destroy();
}
