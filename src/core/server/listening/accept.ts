import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { ListenAddress } from '../../config/addresses.ts';
import { readProxyHeader } from '../../http/reading/proxy-protocol.ts';
import { type Cidr, cidrsContain } from '../../values/network/cidr.ts';
import { type Peer, clientAddress, unknownAddress } from '../../values/network/peer.ts';
import { tcpBelow } from './node-internals.ts';

/** How long a proxy may take for the header of the PROXY protocol. */
const proxyHeaderMs = 5_000;

/**
 * The property of a connection that has its peer. V8 visits each entry of a WeakMap in each
 * collection of garbage, which costs a connection more than its acceptance.
 */
const peerKey = Symbol('peer');

/** A connection, as a listener accepts it. */
type Accepted = Duplex & { [peerKey]?: Peer };

/** The peer of a connection that no listener has accepted. */
const stranger: Peer = {
  listener: 'tcp',
  address: unknownAddress,
  local: () => 'localhost',
  tls: undefined,
};

/** Returns the remote side of a connection, or of TLS on it. */
export function peerOf(socket: Accepted): Peer {
  const known = socket[peerKey];
  if (known !== undefined) return known;
  const below = tcpBelow(socket);
  if (below === undefined) return stranger;
  const peer = { ...peerOf(below), tls: socket as TLSSocket };
  socket[peerKey] = peer;
  return peer;
}

/**
 * Takes the peer of each connection when a listener accepts it, and closes a TCP connection without
 * an address: its client has reset it already. `proxies` are the networks whose connections begin
 * with a header of the PROXY protocol, which names another address. A connection from there without
 * a valid header is closed; no header is read from elsewhere, so that a client cannot name another
 * one. Call it when all other listeners for connections are set.
 */
export function acceptConnections(
  server: Server,
  listener: ListenAddress['kind'],
  proxies: () => readonly Cidr[],
): void {
  const others = server.listeners('connection') as ((socket: Socket) => void)[];
  const serve = (socket: Socket & Accepted, address: Peer['address']): void => {
    const local = (): string => localAuthority(socket);
    socket[peerKey] = { listener, address, local, tls: undefined };
    for (const other of others) {
      if (!socket.destroyed) other.call(server, socket);
    }
  };
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const address = listener === 'unix' ? unknownAddress : clientAddress(socket.remoteAddress);
    if (listener === 'tcp' && address === unknownAddress) {
      socket.destroy();
      return;
    }
    const from = proxies();
    if (from.length === 0 || !cidrsContain(from, address)) serve(socket, address);
    else {
      readHeader(socket, address, (client) => {
        serve(socket, client);
      });
    }
  });
}

function localAuthority({ localAddress, localPort }: Socket): string {
  const address = clientAddress(localAddress);
  if (address === unknownAddress || localPort === undefined) return 'localhost';
  return `${address.includes(':') ? `[${address}]` : address}:${localPort}`;
}

/** Reads the header of a connection; calls `done` with the address in it, or that of the proxy. */
function readHeader(
  socket: Socket,
  proxy: Peer['address'],
  done: (client: Peer['address']) => void,
): void {
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
    const rest = bytes.subarray(header.length);
    if (rest.length > 0) socket.unshift(rest);
    done(header.client === undefined ? proxy : clientAddress(header.client.address));
  };
  socket.on('readable', read).on('error', destroy).on('close', stop).on('end', destroy);
}
