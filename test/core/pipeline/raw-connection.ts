import { once } from 'node:events';
import { connect, type NetConnectOpts, type Socket } from 'node:net';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Duplex } from 'node:stream';
import type { TestContext } from 'node:test';
import { AnswerReader } from './answers.ts';

/** A connection that sends requests unchanged, and reads responses one by one. */
export interface RawConnection {
  readonly socket: Duplex;
  readonly answers: AnswerReader;
  /** Sends a request and reads its response. */
  ask(request: string): ReturnType<AnswerReader['next']>;
}

/** A request with a field about its connection. */
export const firstRequest = 'GET /svc1/health HTTP/1.1\r\nHost: localhost\r\nTE: a\r\n\r\n';

/** Makes an RawConnection of an open socket; destroyed after the test. */
export function rawConnection(t: Pick<TestContext, 'after'>, socket: Duplex): RawConnection {
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

/** Opens a connection, and sends a first request on it. */
export async function openUsed(
  t: Pick<TestContext, 'after'>,
  where: NetConnectOpts,
  first = firstRequest,
): Promise<RawConnection> {
  const socket = connect(where);
  const connection = rawConnection(t, socket);
  await once(socket, 'connect');
  await connection.ask(first);
  return connection;
}

/** Collects the connections that the servers of this process accept. */
export function serverSockets(t: Pick<TestContext, 'after'>): readonly Socket[] {
  const sockets: Socket[] = [];
  const note = (told: unknown): void => {
    sockets.push((told as { readonly socket: Socket }).socket);
  };
  subscribe('net.server.socket', note);
  t.after(() => unsubscribe('net.server.socket', note));
  return sockets;
}
