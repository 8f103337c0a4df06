// The process behind receiver.ts: a fast receiver of webhooks that measures latencies, one that
// never answers, and one that sends a byte a second. It exchanges messages with its parent process.
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** A message of the parent: start to count, or send a report. */
export type ReceiverCommand = 'begin' | 'report';

/** A message to the parent: the ports once, then reports about the deliveries since `begin`. */
export type ReceiverMessage =
  | {
      readonly kind: 'ready';
      readonly fast: number;
      readonly silent: number;
      readonly drip: number;
    }
  | {
      readonly kind: 'report';
      readonly deliveries: number;
      readonly latenciesMs: readonly number[];
    };

const dripMs = 1_000;
/** Enough for a p99; more only takes memory. */
const latenciesMax = 200_000;

let deliveries = 0;
let latenciesMs: number[] = [];

const fast = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  void buffer(request).then((body) => {
    response.writeHead(204).end();
    note(body);
  });
});
const silent = createServer((request) => request.resume());
const drip = createServer({ requestTimeout: 0 }, dripping);

function note(body: Buffer): void {
  const nowMs = performance.timeOrigin + performance.now();
  deliveries += 1;
  if (latenciesMs.length >= latenciesMax) return;
  const { data } = JSON.parse(body.toString()) as { readonly data: { readonly at: number } };
  latenciesMs.push(nowMs - data.at);
}

const listening = [fast, silent, drip].map(listen);
const [fastPort = 0, silentPort = 0, dripPort = 0] = await Promise.all(listening);
send({ kind: 'ready', fast: fastPort, silent: silentPort, drip: dripPort });

process.on('message', (command: ReceiverCommand) => {
  if (command === 'begin') [deliveries, latenciesMs] = [0, []];
  else send({ kind: 'report', deliveries, latenciesMs });
});
process.once('disconnect', () => process.exit());

function dripping(...[request, response]: Parameters<RequestListener>): void {
  request.resume();
  response.writeHead(200, { 'Content-Length': '1000000' });
  const timer = setInterval(() => response.write('x'), dripMs);
  response.once('close', () => {
    clearInterval(timer);
  });
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

function send(message: ReceiverMessage): void {
  process.send?.(message);
}
