import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** An event in a delivery. */
interface Told {
  readonly id: string;
  readonly seq: number;
}

/** The deliveries to one path; each hook has its own. */
export interface Came {
  readonly path: string;
  /** Events by seq; two events never have the same seq. */
  readonly events: Map<number, string>;
  /** Digests of the bodies by webhook-id; a body never changes. */
  readonly bodies: Map<string, string>;
  requests: number;
  /** The highest seq of an event that was accepted. */
  accepted: number;
  /** Whether its hook has `order`: no message may come before the one before it was accepted. */
  isOrdered: boolean;
  /** Set once no further delivery is allowed. */
  isClosed: boolean;
}

/** An unreliable receiver of webhooks that records all deliveries. */
export interface FaultyReceiver {
  readonly origin: string;
  /** The deliveries to a path. */
  of(path: string): Came;
  /** Sets the function to call at each request; it replaces the previous one. */
  onRequest(callback: () => void): void;
  /** A sentence for each request that broke a promise. */
  readonly violations: readonly string[];
  close(): void;
}

/** Starts the receiver on a loopback address. */
export async function startFaultyReceiver(): Promise<FaultyReceiver> {
  const paths = new Map<string, Came>();
  const violations: string[] = [];
  let called = (): void => undefined;
  const of = (path: string): Came => {
    const came = paths.get(path) ?? {
      path,
      events: new Map<number, string>(),
      bodies: new Map<string, string>(),
      requests: 0,
      accepted: 0,
      isOrdered: false,
      isClosed: false,
    };
    paths.set(path, came);
    return came;
  };
  const server = createServer((request, response) => {
    const { url: path = '', headers } = request;
    const came = of(path);
    called();
    if (came.isClosed) violations.push(`${path} was sent to after its hook was invalidated`);
    buffer(request).then(
      (body) => {
        const problem = take(came, String(headers['webhook-id']), body);
        if (problem !== undefined) violations.push(`${path}: ${problem}`);
        if (answer(response)) accept(came, body);
      },
      // The sender was killed during the request.
      () => undefined,
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    of,
    onRequest(callback) {
      called = callback;
    },
    violations,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Records a delivery; returns the promise that it breaks, if any. */
function take(came: Came, id: string, body: Buffer): string | undefined {
  came.requests += 1;
  const digest = createHash('sha256').update(body).digest('hex');
  const earlier = came.bodies.get(id) ?? digest;
  came.bodies.set(id, digest);
  if (earlier !== digest) return `${id} came with another body`;
  const events = eventsOf(body);
  assert.ok(events.length > 0);
  const [{ seq: first } = { seq: 0 }] = events;
  if (came.isOrdered && first > came.accepted + 1) {
    return `seq ${first} came before ${came.accepted + 1} was accepted`;
  }
  for (const event of events) {
    const known = came.events.get(event.seq) ?? event.id;
    came.events.set(event.seq, event.id);
    if (known !== event.id) return `seq ${event.seq} is that of ${known} and of ${event.id}`;
  }
  return undefined;
}

function accept(came: Came, body: Buffer): void {
  for (const { seq } of eventsOf(body)) came.accepted = Math.max(came.accepted, seq);
}

function eventsOf(body: Buffer): readonly Told[] {
  const message = JSON.parse(body.toString()) as Told | { readonly batch: readonly Told[] };
  return 'batch' in message ? message.batch : [message];
}

/** Answers 200 in most cases; else late, with an error, or not at all. Returns whether it accepts. */
function answer(response: ServerResponse): boolean {
  const chance = Math.random();
  if (chance < 0.7) response.writeHead(204).end();
  else if (chance < 0.8) setTimeout(() => response.writeHead(200).end('late'), 60 * Math.random());
  else if (chance < 0.9) response.writeHead(503).end();
  else response.destroy();
  return chance < 0.8;
}
