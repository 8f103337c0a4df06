import { once } from 'node:events';
import { connect, type NetConnectOpts, type Socket } from 'node:net';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { TestContext } from 'node:test';
import { AnswerReader } from './answers.ts';

/** A connection on which requests are sent as they are, and answers read one by one. */
export interface AskedConnection {
  readonly socket: Duplex;
  readonly answers: AnswerReader;
  /** Sends what there is; a request whose answer is then read. */
  ask(request: string): ReturnType<AnswerReader['next']>;
}

/** A request that Node's HTTP server has to read. */
export const firstRequest = 'GET /svc1/health HTTP/1.1\r\nHost: localhost\r\nTE: a\r\n\r\n';

/** Follows a connection that is open; it is gone after the test. */
export function asked(t: Pick<TestContext, 'after'>, socket: Duplex): AskedConnection {
  t.after(() => socket.destroy());
  socket.on('error', () => undefined);
  const answers = new AnswerReader(socket);
  return {
    socket,
    answers,
    ask(request) {
      socket.write(Buffer.from(request, 'latin1'));
      return answers.next(request.slice(0, request.indexOf(' ')));
    },
  };
}

/** Opens a connection on which a first request has been answered. */
export async function openUsed(
  t: Pick<TestContext, 'after'>,
  where: NetConnectOpts,
  first = firstRequest,
): Promise<AskedConnection> {
  const socket = connect(where);
  const connection = asked(t, socket);
  await once(socket, 'connect');
  await connection.ask(first);
  return connection;
}

/** Targets of the requests that Node's HTTP servers of this process have parsed, from now on. */
export function parsedRequests(t: Pick<TestContext, 'after'>): {
  readonly targets: readonly string[];
} {
  const targets: string[] = [];
  const note = (told: unknown): void => {
    const { request } = told as { readonly request: IncomingMessage };
    targets.push(request.url ?? '');
  };
  subscribe('http.server.request.start', note);
  t.after(() => unsubscribe('http.server.request.start', note));
  return { targets };
}

/** The connections that the servers of this process accept from now on. */
export function serverSockets(t: Pick<TestContext, 'after'>): readonly Socket[] {
  const sockets: Socket[] = [];
  const note = (told: unknown): void => {
    sockets.push((told as { readonly socket: Socket }).socket);
  };
  subscribe('net.server.socket', note);
  t.after(() => unsubscribe('net.server.socket', note));
  return sockets;
}
