// A load generator for HTTP/2 over TLS (RFC 9113). Each connection has `streams` requests in flight,
// of one URL without end, or those of a visit (scenarios.ts), after which a new connection makes the
// next one; it resumes a session of TLS if the scenario says so. It writes frames itself, since Node's client would need more CPU time than the server under
// test. Its argument is a LoadOrder as JSON; it prints a LoadResult without the CPU time.
import { connect, type TLSSocket } from 'node:tls';
import { beginning, flags, frame, literal, readFrames, types } from './http2-frames.ts';
import { printResult } from './generator-result.ts';
import type { LoadOrder } from './load.ts';
import { visitFiles } from './scenarios.ts';
import { firstVisitor, visitorFields } from './visitors.ts';

const order = JSON.parse(process.argv[2] ?? '') as LoadOrder;
const { hostname, port, host, pathname, search } = new URL(order.url);
const { streams = 1 } = order;
const target = pathname + search;
/** The targets of a connection, the page first; undefined for one target without end. */
const visited = targetsOf(order.transport);
/** A session of TLS that the next connection resumes (RFC 8446 §2.2). */
let session: Buffer | undefined;

const latenciesMs: number[] = [];
let [bytes, refused, broken, over] = [0, 0, 0, false];
let visitors = firstVisitor();
const started = performance.now();
const sockets = new Set<TLSSocket>();
for (let count = 0; count < order.connections; count += 1) open();
setTimeout(finish, order.seconds * 1_000);

function open(): void {
  const options = { host: hostname, port: Number(port), rejectUnauthorized: false };
  const resumed = order.transport === 'h2-resumed' && session !== undefined ? { session } : {};
  const socket = connect({ ...options, ...resumed, ALPNProtocols: ['h2'] });
  socket.on('session', (newest: Buffer) => {
    session = newest;
  });
  sockets.add(socket);
  const requests = requestsOn(socket);
  let unread: Buffer = Buffer.alloc(0);
  const take = (type: number, flag: number, id: number, payload: Buffer): void => {
    const isAck = (flag & flags.ack) !== 0;
    if (type === types.settings && !isAck) socket.write(frame(types.settings, flags.ack, 0));
    else if (type === types.ping && !isAck) {
      socket.write(frame(types.ping, flags.ack, 0, payload));
    } else if (type === types.data) requests.received(payload.length);
    else if (type === types.reset || type === types.goAway) socket.destroy();
    else if (type === types.headers && isRefusal(payload)) refused += 1;
    const isAnswer = type === types.data || type === types.headers;
    if (isAnswer && (flag & flags.endStream) !== 0) requests.answered(id);
  };
  socket.setNoDelay(true);
  socket.on('secureConnect', () => {
    socket.write(beginning);
    requests.begin();
  });
  socket.on('data', (chunk: Buffer) => {
    unread = readFrames(unread.length === 0 ? chunk : Buffer.concat([unread, chunk]), take);
  });
  socket.on('error', () => {
    if (!over) broken += 1;
  });
  socket.on('close', () => {
    sockets.delete(socket);
    if (!over) open();
  });
}

/** Makes the requests of one connection, and counts their answers. */
function requestsOn(socket: TLSSocket) {
  const begunAt = performance.now();
  const blockOf = visitorBlocks();
  const sentAt = new Map<number, number>();
  let [stream, answers, length] = [-1, 0, 0];
  const ask = (count: number): void => {
    for (let one = 0; one < count; one += 1) {
      const asked = visited === undefined ? target : visited[(stream + 1) / 2];
      if (asked === undefined) return;
      stream += 2;
      sentAt.set(stream, performance.now());
      const flag = flags.endStream | flags.endHeaders;
      socket.write(frame(types.headers, flag, stream, blockOf(asked)));
    }
  };
  const ended = (fromMs: number): void => {
    latenciesMs.push(performance.now() - fromMs);
    bytes += length;
    length = 0;
  };
  const answered = (id: number): void => {
    answers += 1;
    if (visited === undefined) {
      // The window of the connection grows again by the bytes received.
      if (length > 0) socket.write(windowUpdate(length));
      ended(sentAt.get(id) ?? 0);
    }
    sentAt.delete(id);
    if (answers === visited?.length) {
      ended(begunAt);
      socket.end();
    } else ask(visited !== undefined && answers === 1 ? streams : 1);
  };
  return {
    /** The files of a visit follow its page, as in a browser. */
    begin: () => {
      ask(visited === undefined ? streams : 1);
    },
    received: (more: number) => {
      length += more;
    },
    answered,
  };
}

function targetsOf(transport: LoadOrder['transport']): readonly string[] | undefined {
  if (transport === 'h2-new' || transport === 'h2-resumed') return [target];
  if (transport !== 'visit') return undefined;
  return [target, ...Array.from({ length: visitFiles }, (_, at) => fileOfVisit(at + 1))];
}

/** The target of a file beside the page of a visit. */
function fileOfVisit(file: number): string {
  return pathname.replace(/[^/]*$/, `${file}.js`);
}

function windowUpdate(size: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(size);
  return frame(types.windowUpdate, 0, 0, payload);
}

/**
 * The requests of one visitor on one connection, as browsers encode them (RFC 7541): the first has
 * the fields of the visitor as literals that are indexed, later ones have their indexes; target and
 * Referer differ each time.
 */
function visitorBlocks(): (asked: string) => Buffer {
  visitors += 1;
  const { Referer: _page, ...fields } = { ...order.headers, ...visitorFields(visitors) };
  const known = [
    [':authority', host],
    ...Object.entries(fields).map(([name, value]) => [name.toLowerCase(), value]),
  ] as const;
  const getOverTls = Buffer.from([0x82, 0x87]);
  const first = known.map(([name = '', value = '']) => literal(0x40, name, value));
  // The newest entry of the dynamic table has the lowest index (§2.3.3).
  const later = Buffer.from(known.map((_, at) => 0x80 | (62 + known.length - 1 - at)));
  let requests = 0;
  return (asked) => {
    requests += 1;
    return Buffer.concat([
      getOverTls,
      literal(0, ':path', asked),
      ...(requests === 1 ? first : [later]),
      literal(0, 'referer', `https://www.example.com/${visitors}/${requests}`),
    ]);
  };
}

/**
 * Whether a response has one of the statuses from 400 in the static table (RFC 7541 Appendix A).
 */
function isRefusal(block: Buffer): boolean {
  const status = block.find((byte) => byte >= 0x88 && byte <= 0x8e);
  return status !== undefined && status >= 0x8c;
}

function finish(): void {
  over = true;
  printResult({ startedMs: started, latenciesMs, bytes, refused, broken });
  for (const socket of sockets) socket.destroy();
}
