import assert from 'node:assert/strict';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { Agent as TlsAgent, get as getOverTls } from 'node:https';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { Cleaning } from '../folder.ts';

/** A site that visitors request without a pause. */
interface Visited {
  readonly url: string;
  readonly tlsUrl: string;
  readonly ca: string;
  readonly apikey: string;
}

/** The responses that the visitors of a site got. */
export interface Visits {
  /** Stops the visitors; resolves to the number of responses of each kind of visitor. */
  end(): Promise<Readonly<Record<string, number>>>;
  /** A text for each failure, with the kind of the visitor. */
  readonly failures: readonly string[];
  /** The answers to the inserts of events, by their `vk`. */
  readonly inserted: ReadonlyMap<string, string>;
  /** The codes of the Close frames that the websocket got. */
  readonly closes: readonly number[];
}

/** Leaves the processes that start some of the machine. */
const betweenRequestsMs = 5;

/** After this number of failures, the visitors stop. */
const failuresMax = 20;

/** Requests pages of a site by all kinds of connections, and inserts events over a websocket. */
export function visit(t: Cleaning, { url, tlsUrl, ca, apikey }: Visited): Visits {
  const failures: string[] = [];
  const counts: Record<string, number> = {};
  const inserted = new Map<string, string>();
  const closes: number[] = [];
  const agents = {
    'HTTP/1.1, kept alive': new Agent({ keepAlive: true, maxSockets: 2 }),
    'HTTP/1.1, new connections': new Agent({ keepAlive: false }),
  };
  const tlsAgents = {
    'TLS, kept alive': new TlsAgent({ keepAlive: true, maxSockets: 2, ca }),
    'TLS, new connections': new TlsAgent({ keepAlive: false, ca, maxCachedSessions: 0 }),
  };
  let isOver = false;
  const repeat = async (kind: string, request: () => Promise<number>): Promise<void> => {
    while (!isOver) {
      try {
        assert.equal(await request(), 200);
        counts[kind] = (counts[kind] ?? 0) + 1;
        await delay(betweenRequestsMs);
      } catch (error) {
        failures.push(`${kind}: ${String(error)}`);
        if (failures.length > failuresMax) return;
      }
    }
  };
  const http2 = http2Requests(tlsUrl, ca);
  const socket = socketCalls(url, apikey, closes);
  let events = 0;
  const running = [
    ...Object.entries(agents).map(([kind, agent]) => repeat(kind, () => status(get, url, agent))),
    ...Object.entries(tlsAgents).map(([kind, agent]) =>
      repeat(kind, () => status(getOverTls, tlsUrl, agent)),
    ),
    repeat('HTTP/2', http2.request),
    repeat('websocket', async () => {
      events += 1;
      const vk = `event ${events}`;
      const answer = await socket.call({
        a: 'svc1.event.insert',
        v: { type: 'sale.completed', data: { vk } },
        vk,
      });
      inserted.set(vk, answer);
      return 200;
    }),
  ];
  const close = (): void => {
    isOver = true;
    for (const agent of [...Object.values(agents), ...Object.values(tlsAgents)]) agent.destroy();
    http2.close();
    socket.close();
  };
  t.after(close);
  return {
    failures,
    inserted,
    closes,
    async end() {
      isOver = true;
      await Promise.all(running);
      close();
      return counts;
    },
  };
}

async function status<A>(
  request: (
    url: string,
    options: { agent: A },
    done: (message: IncomingMessage) => void,
  ) => {
    once(name: 'error', listener: (error: Error) => void): unknown;
  },
  url: string,
  agent: A,
): Promise<number> {
  const message = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url, { agent }, resolve).once('error', reject);
  });
  assert.equal(await text(message), 'here');
  return message.statusCode ?? 0;
}

/**
 * Requests over one HTTP/2 session after the other: a GOAWAY says to open another one. A refused
 * request is sent again, as every client may (RFC 9113 §8.7).
 */
function http2Requests(url: string, ca: string) {
  const { origin, pathname } = new URL(url);
  let session: ClientHttp2Session | undefined;
  const request = async (): Promise<number> => {
    if (session === undefined || session.closed || session.destroyed) {
      session = connectHttp2(origin, { ca });
      session.on('error', () => undefined);
    }
    const stream = session.request({ ':path': pathname });
    const answered = new Promise<number>((resolve, reject) => {
      stream.once('response', (headers) => {
        resolve(headers[':status'] ?? 0);
      });
      stream.once('error', reject);
    });
    const [code, content] = await Promise.all([answered, text(stream)]);
    assert.equal(content, 'here');
    return code;
  };
  return {
    request: () =>
      request().catch((error: unknown) => {
        if (String(error).includes('NGHTTP2_REFUSED_STREAM')) return request();
        throw error;
      }),
    close() {
      session?.destroy();
    },
  };
}

/**
 * Operations over one websocket after the other. A call that was not answered when the websocket
 * closed is repeated, with its `vk`.
 */
function socketCalls(url: string, apikey: string, closes: number[]) {
  let socket: WebSocket | undefined;
  const open = async (): Promise<WebSocket> => {
    if (socket?.readyState === WebSocket.OPEN) return socket;
    const opening = new WebSocket(`${url.replace('http', 'ws').replace(/\/$/, '')}/svc1/ws`, {
      headers: { apikey },
    });
    await new Promise((resolve, reject) => {
      opening.once('open', resolve).once('error', reject);
    });
    opening.on('close', (code) => closes.push(code));
    socket = opening;
    return opening;
  };
  return {
    async call(envelope: object): Promise<string> {
      for (;;) {
        const current = await open();
        const answer = await new Promise<string | undefined>((resolve) => {
          const closed = (): void => {
            resolve(undefined);
          };
          current.once('close', closed);
          current.once('message', (data: Buffer) => {
            current.off('close', closed);
            resolve(data.toString());
          });
          current.send(JSON.stringify(envelope));
        });
        if (answer === undefined) continue;
        assert.match(answer, /"data":/);
        return answer;
      }
    },
    close() {
      socket?.terminate();
    },
  };
}
