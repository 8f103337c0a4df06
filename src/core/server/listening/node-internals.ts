import type { Worker } from 'node:cluster';
import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/**
 * Parts of Node that have no public name, and what the server does without them. No other file uses
 * any; `test/core/pipeline/node-internals.test.ts` shows that they are there.
 */

/** The releases of Node on which all of them were tested. */
export const testedNodeMajors: readonly number[] = [24, 26];

/**
 * The TCP connection below a TLS socket: `_parent`. Without it, a broken answer ends with the TLS
 * session, and a client that speaks plain HTTP to a TLS port gets no answer.
 */
export function tcpBelow(
  socket: Duplex & { readonly _parent?: Socket | null },
): Socket | undefined {
  return socket._parent ?? undefined;
}

/**
 * Has the handshake of a TLS connection ask for a certificate of the client, and go on without a
 * valid one: `_handle.setVerifyMode` and `_requestCert`. The public option `requestCert` asks the
 * clients of all hosts. Without them, no client has a certificate, and rules that need one refuse.
 */
export function askForCertificate(socket: Socket): void {
  const { _handle: handle } = socket as {
    readonly _handle?: { setVerifyMode?(ask: boolean, require: boolean): void } | null;
  };
  handle?.setVerifyMode?.(true, false);
  Object.assign(socket, { _requestCert: true });
}

/** The handle of a socket. */
interface Handle {
  readonly writeQueueSize?: number;
  /** The bytes written so far. */
  readonly bytesWritten?: number;
  /** The stream below TLS. */
  readonly _parent?: Handle;
}

/**
 * Written bytes of a socket that wait for its client: `_handle.writeQueueSize`. TLS frees its bytes
 * only when it has written all of them, so this counts the handle below TLS. Without that property,
 * it counts the bytes in the socket's own buffer, which shrinks later.
 */
export function queuedBytes(socket: Pick<Socket, 'writableLength'>): number {
  const { _handle: handle } = socket as { readonly _handle?: Handle | null };
  return handle?._parent?.writeQueueSize ?? handle?.writeQueueSize ?? socket.writableLength;
}

/**
 * The bytes that the system has taken from a socket so far, which of a slow client is less than
 * what was written.
 */
export function deliveredBytes(socket: Pick<Socket, 'bytesWritten' | 'writableLength'>): number {
  const { _handle: handle } = socket as { readonly _handle?: Handle | null };
  const { bytesWritten = 0, writeQueueSize = 0 } = handle?._parent ?? handle ?? {};
  return bytesWritten - writeQueueSize;
}

/**
 * Keeps what arrives on a socket until somebody reads it again: `readableFlowing`. Without it, the
 * first bytes of another protocol could be lost.
 */
export function stopFlowing(socket: Socket): void {
  Object.assign(socket, { readableFlowing: null });
}

/**
 * The sockets on which the primary process accepts connections for its workers: `_handle` of the
 * servers that Node's cluster module makes and hides. Returns a function that closes those that are
 * open, while the workers still take the connections that were accepted. Without it, Node closes
 * them with the last worker, and drops connections that no worker has taken.
 */
export function watchAcceptors(): () => void {
  const open = new Set<AcceptedConnection>();
  subscribe('tracing:net.server.listen:asyncEnd', (message) => {
    const { server } = message as { readonly server?: { readonly _handle?: AcceptedConnection } };
    if (server?._handle !== undefined) open.add(server._handle);
  });
  return () => {
    for (const handle of open) handle.close();
    open.clear();
  };
}

/** A connection that the primary process has accepted, or the socket that accepts. */
interface AcceptedConnection {
  close(): void;
}

/**
 * Has connections answered that were on their way to a worker when it died. The primary process
 * waits for each worker's message that it has taken a connection; from a dead worker none comes,
 * and the client would wait for as long as it likes (nodejs/node#3551, still so in Node 26). This
 * sends Node that message (`internalMessage`) as if the worker had refused the connection: Node
 * gives it to another worker. Where `hasOthers` says that there is none, it closes the connection.
 * With messages of another form, it does nothing. Returns the number of connections that are on
 * their way.
 */
export function returnHandedOver(worker: Worker, hasOthers: () => boolean): () => number {
  const { process: child } = worker;
  const underWay = new Map<number, AcceptedConnection>();
  const send = child.send.bind(child) as (...given: readonly unknown[]) => boolean;
  child.send = (message: unknown, ...more: readonly unknown[]): boolean => {
    const [connection] = more;
    const number = numberOf(message, 'seq');
    if (number !== undefined && isConnection(connection)) underWay.set(number, connection);
    return send(message, ...more);
  };
  child.on('internalMessage', (message: unknown) => {
    const number = numberOf(message, 'ack');
    if (number !== undefined) underWay.delete(number);
  });
  // Either may be the last event of a worker; after it, Node gives the worker no connection.
  const giveBack = (): void => {
    if (worker.isConnected()) return;
    for (const [ack, connection] of underWay) {
      if (hasOthers()) child.emit('internalMessage', { cmd: clusterCommand, ack, accepted: false });
      else connection.close();
    }
    underWay.clear();
  };
  worker.once('disconnect', giveBack).once('exit', giveBack);
  return () => underWay.size;
}

const clusterCommand = 'NODE_CLUSTER';

/** The number of a message of Node's own, or of the one that it answers. */
function numberOf(message: unknown, name: 'seq' | 'ack'): number | undefined {
  const { cmd, [name]: number } = (message ?? {}) as Readonly<Record<string, unknown>>;
  return cmd === clusterCommand && typeof number === 'number' ? number : undefined;
}

function isConnection(value: unknown): value is AcceptedConnection {
  return typeof value === 'object' && value !== null && 'close' in value;
}
