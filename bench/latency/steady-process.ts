// The process behind steady.ts: requests at a constant rate over kept connections, whether or not
// the answers keep up. Its argument is a SteadyOrder as JSON; it prints a SteadyResult.
import { connect, type Socket } from 'node:net';
import type { SteadyOrder, SteadyResult } from './steady.ts';

/** One connection, with at most one request on its way. */
interface Connection {
  readonly socket: Socket;
  /** Numbers of the requests that are due on it and not answered, the oldest first. */
  readonly owed: number[];
  /** Bytes of the oldest one's answer that have still to come; undefined before its first. */
  missing: number | undefined;
}

const order = JSON.parse(process.argv[2] ?? '') as SteadyOrder;
const { hostname, port, host, pathname, search } = new URL(order.url);
const request = Buffer.from(`GET ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\n\r\n`, 'latin1');
const statusLine = Buffer.from(`HTTP/1.1 ${order.status} `, 'latin1');
const endOfHead = Buffer.from('\r\n\r\n');
/** Enough for an answer of 100 KB in one call; the bytes themselves are of no interest. */
const readBuffer = Buffer.allocUnsafeSlow(128 * 1024);
const patienceMs = 10_000;

const intervalMs = 1000 / order.rate;
const uncounted = Math.round(order.rate * order.warmUpSeconds);
const total = uncounted + Math.round(order.rate * order.seconds);
const latenciesMs = new Float64Array(total - uncounted);
const latenessMs = new Float64Array(total - uncounted);
let next = 0;
let answered = 0;

const connections: Connection[] = [];
while (connections.length < order.connections) connections.push(await open());
const started = performance.now();
turn();

function open(): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      ...{ host: hostname, port: Number(port), noDelay: true },
      onread: {
        buffer: readBuffer,
        callback: (bytes) => {
          take(connection, bytes);
          return true;
        },
      },
    });
    const connection: Connection = { socket, owed: [], missing: undefined };
    socket.once('error', reject);
    socket.once('close', () => fail('a connection was closed'));
    socket.once('connect', () => {
      resolve(connection);
    });
  });
}

/** Sends what has become due; then the event loop takes the answers that are there, and so on. */
function turn(): void {
  const now = performance.now();
  for (; next < total && started + next * intervalMs <= now; next += 1) {
    const connection = connections[next % connections.length];
    if (connection === undefined) return;
    connection.owed.push(next);
    if (connection.owed.length === 1) send(connection, now);
  }
  if (answered === total) finish();
  else if (now - started > total * intervalMs + patienceMs) fail('answers did not come');
  else setImmediate(turn);
}

/** Sends the oldest that is owed. What it is late by is the generator's only where nothing was owed. */
function send({ socket, owed }: Connection, now: number): void {
  const [number = 0] = owed;
  if (number >= uncounted) latenessMs[number - uncounted] = now - (started + number * intervalMs);
  socket.write(request);
}

/** Takes a piece of an answer, which lies in the buffer that all share. */
function take(connection: Connection, bytes: number): void {
  let missing = connection.missing;
  if (missing === undefined) {
    const end = readBuffer.indexOf(endOfHead);
    if (readBuffer.compare(statusLine, 0, statusLine.length, 0, statusLine.length) !== 0) {
      fail(`an answer that starts with ${readBuffer.toString('latin1', 0, 20)}`);
    }
    if (end < 0 || end >= bytes) fail('a head that came in pieces');
    missing = end + endOfHead.length + order.contentBytes;
  }
  missing -= bytes;
  if (missing < 0) fail('more content than expected');
  connection.missing = missing === 0 ? undefined : missing;
  if (missing === 0) done(connection);
}

function done(connection: Connection): void {
  const now = performance.now();
  const number = connection.owed.shift() ?? 0;
  answered += 1;
  if (number >= uncounted) {
    latenciesMs[number - uncounted] = now - (started + number * intervalMs);
  }
  if (connection.owed.length > 0) connection.socket.write(request);
}

function finish(): never {
  const seconds = (performance.now() - started) / 1000;
  latenciesMs.sort();
  latenessMs.sort();
  const share = (sorted: Float64Array, part: number): number =>
    sorted[Math.floor(sorted.length * part)] ?? NaN;
  const result: SteadyResult = {
    requestsPerSecond: total / seconds,
    p50Ms: share(latenciesMs, 0.5),
    p99Ms: share(latenciesMs, 0.99),
    p999Ms: share(latenciesMs, 0.999),
    lateP99Ms: share(latenessMs, 0.99),
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
  process.exit();
}

function fail(why: string): never {
  process.stderr.write(`${order.url}: ${why}\n`);
  process.exit(1);
}
