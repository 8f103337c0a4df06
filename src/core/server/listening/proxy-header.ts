import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { plainAddress } from '../../http/reading/forwarded.ts';
import { readProxyHeader } from '../../http/reading/proxy-protocol.ts';
import { cidrsContain, type Cidr } from '../../values/network/cidr.ts';
import { proxyHeaderMs } from '../limits.ts';
import type { Listener } from './listener.ts';
import { tcpBelow } from './node-internals.ts';

/** Clients that a proxy has named, by its connection. */
const named = new WeakMap<Socket, { readonly address: string; readonly port: number }>();

/**
 * Reads the header of the PROXY protocol at the beginning of each connection from some networks,
 * and gives the connection the address of the client that it names. Closes a connection from there
 * without a valid header, and reads none from other networks: a client cannot name another one.
 * Call it when all other listeners for connections are set.
 */
export function readProxyHeaders(server: Listener, networks: () => readonly Cidr[]): void {
  const others = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const serve = (): void => {
      for (const other of others) other.call(server, socket);
    };
    const from = networks();
    const isProxy = from.length > 0 && cidrsContain(from, plainAddress(socket.remoteAddress ?? ''));
    if (isProxy) readHeader(socket, serve);
    else serve();
  });
  server.prependListener('secureConnection', (socket: TLSSocket) => {
    const below = tcpBelow(socket);
    const client = below && named.get(below);
    if (client !== undefined) nameClient(socket, client);
  });
}

/** Reads the header of a connection, and then calls `done`. */
function readHeader(socket: Socket, done: () => void): void {
  let bytes: Buffer = Buffer.alloc(0);
  const destroy = (): void => {
    socket.destroy();
  };
  const timer = setTimeout(destroy, proxyHeaderMs);
  const stop = (): void => {
    clearTimeout(timer);
    socket.off('readable', read).off('error', destroy).off('close', stop).off('end', destroy);
  };
  const read = (): void => {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) return;
    bytes = Buffer.concat([bytes, chunk]);
    const header = readProxyHeader(bytes);
    if (header === 'incomplete') return;
    stop();
    if (header === 'malformed') {
      destroy();
      return;
    }
    if (header.client !== undefined) {
      named.set(socket, header.client);
      nameClient(socket, header.client);
    }
    const rest = bytes.subarray(header.length);
    if (rest.length > 0) socket.unshift(rest);
    done();
  };
  socket.on('readable', read).on('error', destroy).on('close', stop).on('end', destroy);
}

function nameClient(
  socket: Socket,
  { address, port }: { readonly address: string; readonly port: number },
): void {
  Object.defineProperty(socket, 'remoteAddress', { value: address });
  Object.defineProperty(socket, 'remotePort', { value: port });
}
