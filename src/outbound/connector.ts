import { isIP, Socket, type LookupFunction, type TcpNetConnectOpts } from 'node:net';
import { buildConnector } from 'undici';
import type { Cidr } from '../model/cidr.ts';
import { addressProblem } from './address.ts';
import { noteTruncation } from './connection-end.ts';
import { refusedAddress } from './failure.ts';
import { otherFamilyCode } from './problem.ts';
import { answerBehindFailureMs, tcpKeepAliveMs } from './limits.ts';
import type { Lookup } from './names.ts';

/**
 * Makes undici's way to a connection: to no address that was not vetted, names as they are looked
 * up for this very connection, literals as they stand. `connectTimeoutMs` bounds looking a name up,
 * connecting and TLS. Connections come from `localAddress` where that is given, and then go only to
 * addresses of its family.
 */
export function guardedConnector({
  allowPrivate,
  connectTimeoutMs,
  ca,
  lookup,
  localAddress,
}: {
  readonly allowPrivate: readonly Cidr[];
  readonly connectTimeoutMs: number;
  readonly ca: readonly string[] | undefined;
  readonly lookup: Lookup;
  readonly localAddress: string | undefined;
}): buildConnector.connector {
  const family = localAddress === undefined ? undefined : isIP(localAddress);
  const guarded = guardedLookup(lookup, { allowPrivate, family });
  const way = { lookup: guarded, autoSelectFamily: true };
  const from = localAddress === undefined ? {} : { localAddress };
  const connect = buildConnector({
    ...way,
    timeout: connectTimeoutMs,
    allowH2: false,
    // Not left to NODE_TLS_REJECT_UNAUTHORIZED.
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca: [...ca] }),
  });

  return ({ servername, ...options }, callback) => {
    // Node asks `lookup` for names only.
    const problem = isIP(options.hostname) && addressProblem(options.hostname, allowPrivate);
    if (problem) {
      process.nextTick(callback, refusedAddress(problem), null);
      return;
    }
    if (isIP(options.hostname) && !isOfFamily(isIP(options.hostname), family)) {
      process.nextTick(callback, otherFamily(), null);
      return;
    }
    if (options.protocol !== 'https:') {
      // Without TLS, undici would take the server name, which is the Host field, for the name to
      // connect to.
      connect({ ...options, ...from }, (...[error, socket]) => {
        if (error === null) callback(null, readOnAfterFailure(socket));
        else callback(error, null);
      });
      return;
    }
    const tcp = tcpConnection({
      ...{ ...way, ...from },
      host: options.hostname,
      port: Number(options.port) || 443,
    });
    const named = servername === undefined ? options : { ...options, servername };
    connect({ ...named, httpSocket: tcp }, (...[error, socket]) => {
      if (error !== null) {
        tcp.destroy();
        callback(error, null);
        return;
      }
      // That of TCP, which it has taken over, is for what is still to be read.
      socket.allowHalfOpen = false;
      socket.once('close', () => tcp.destroy());
      noteTruncation(socket, tcp);
      callback(null, readOnAfterFailure(socket));
    });
  };
}

/**
 * A TCP connection for TLS to run over. Node tells the end of TCP apart from the end of TLS only
 * where the two are separate streams.
 */
function tcpConnection(to: TcpNetConnectOpts): Socket {
  // Its end must not discard what TLS has decrypted and the reader has not taken yet.
  const tcp = new Socket({ allowHalfOpen: true });
  tcp.setNoDelay(true).setKeepAlive(true, tcpKeepAliveMs);
  // Not before TLS has been set up on it.
  process.nextTick(() => {
    if (!tcp.destroyed) tcp.connect(to);
  });
  return tcp;
}

/**
 * Drops the addresses that may not be dialled from what a name leads to; fails when none is left.
 */
function guardedLookup(
  lookup: Lookup,
  {
    allowPrivate,
    family,
  }: { readonly allowPrivate: readonly Cidr[]; readonly family: number | undefined },
): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname).then(
      (all) => {
        const found = all.filter((one) => isOfFamily(one.family, family));
        if (found.length === 0 && all.length > 0) {
          callback(otherFamily(), []);
          return;
        }
        const problems: string[] = [];
        const allowed = found.filter(({ address }) => {
          const problem = addressProblem(address, allowPrivate);
          if (problem !== undefined) problems.push(problem);
          return problem === undefined;
        });
        const [first] = allowed;
        if (first === undefined) {
          callback(refusedAddress(`${hostname}: ${problems.join('; ')}`), []);
        } else if (options.all) {
          callback(null, [...allowed]);
        } else {
          callback(null, first.address, first.family);
        }
      },
      (error: unknown) => {
        callback(error as Error, []);
      },
    );
  };
}

function isOfFamily(family: number, wanted: number | undefined): boolean {
  return wanted === undefined || family === wanted;
}

function otherFamily(): Error {
  const error = new Error('The other side has no address of the family of local_address.');
  return Object.assign(error, { code: otherFamilyCode });
}

type Done = (error?: Error | null) => void;

/**
 * Has a connection read on for a moment when it cannot be written to any more: a server may answer
 * before it has read all of a request, and end the connection (RFC 9112 §9.6). Its answer lies
 * there unread then, and would go with the connection, which Node ends at the first write that
 * fails.
 */
function readOnAfterFailure(socket: Socket): Socket {
  const [write, writev] = [socket._write.bind(socket), socket._writev?.bind(socket)];
  const held = (done: Done) => (error?: Error | null) => {
    if (!error || socket.destroyed) done(error);
    else holdFailure(socket, error, done);
  };
  socket._write = (chunk, encoding, done) => {
    write(chunk, encoding, held(done));
  };
  if (writev !== undefined) {
    socket._writev = (chunks, done) => {
      writev(chunks, held(done));
    };
  }
  return socket;
}

/** Tells of a failed write when the connection has ended, or nothing has come in time. */
function holdFailure(socket: Socket, error: Error, done: Done): void {
  const tell = (): void => {
    clearTimeout(waiting);
    socket.off('close', tell);
    done(error);
  };
  const waiting = setTimeout(tell, answerBehindFailureMs);
  socket.once('close', tell);
}
