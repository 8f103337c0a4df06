import dns from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import type { Readable } from 'node:stream';
import { Agent, buildConnector } from 'undici';
import type { Cidr } from '../model/cidr.ts';
import { headerBlockBytesMax, outboundConnectionsMax } from '../model/limits.ts';
import { addressProblem } from './address.ts';
import { Exchange, type Answer } from './exchange.ts';
import { isLostConnection, refusedAddress } from './failure.ts';

/** A request to another server. */
export interface OutboundRequest {
  /** `scheme://host[:port]` of http or https. */
  readonly origin: string;
  /** Path and query, percent-encoded. */
  readonly target: string;
  readonly method: string;
  /** Name, value, name, value; no Transfer-Encoding, Connection, Keep-Alive, Upgrade or Expect. */
  readonly fields: readonly string[];
  /**
   * Sent at the speed of the other side, and destroyed when that does not want it; chunked without
   * Content-Length.
   */
  readonly body: Readable | undefined;
  /** Aborts the exchange, its answer's content included. */
  readonly signal: AbortSignal;
}

/** Where a name leads. */
export type Lookup = (
  hostname: string,
) => Promise<readonly { readonly address: string; readonly family: number }[]>;

/**
 * The only way out to other servers: pooled connections to addresses that were vetted (contract §7,
 * Addresses).
 */
export interface Dialler {
  /**
   * Sends a request and resolves to its answer, whatever its status: redirects are not followed,
   * content is not decoded. Rejects with `bad_gateway` (down, refused address, no HTTP, broken
   * off), `gateway_timeout`, `invalid` (a field that cannot be sent), or the Failure that the body
   * was destroyed with. A GET or HEAD whose connection ends before an answer begins is sent once
   * more (RFC 9110 §9.2.2).
   */
  send(request: OutboundRequest): Promise<Answer>;
  /**
   * Lets what is under way end, then closes the connections. A request sent later gets a connection
   * of its own.
   */
  close(): Promise<void>;
}

/**
 * Makes a dialler. `connectTimeoutMs` bounds looking a name up, connecting and TLS; `timeoutMs` the
 * wait for the header section, and for each further piece of content. `lookup` is the system's
 * unless given.
 */
export function createDialler({
  allowPrivate,
  connectTimeoutMs,
  timeoutMs,
  lookup = (hostname) => dns.lookup(hostname, { all: true }),
}: {
  readonly allowPrivate: readonly Cidr[];
  readonly connectTimeoutMs: number;
  readonly timeoutMs: number;
  readonly lookup?: Lookup;
}): Dialler {
  const connect = guardedConnector({ allowPrivate, connectTimeoutMs, lookup });
  const createAgent = (): Agent =>
    new Agent({
      connect,
      // HTTP/1.1 alone: one way of framing, pausing and failing to know.
      allowH2: false,
      connections: outboundConnectionsMax,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      maxHeaderSize: headerBlockBytesMax,
    });
  const shared = createAgent();
  const closing: Promise<void>[] = [];

  function exchange({ origin, target, method, fields, body, signal }: OutboundRequest): Exchange {
    const started = new Exchange(signal, connectTimeoutMs + timeoutMs);
    if (signal.aborted) return started;
    const agent = shared.closed ? createAgent() : shared;
    agent.dispatch(
      { origin, path: target, method, headers: fields as string[], body: body ?? null },
      started,
    );
    if (agent !== shared) closing.push(agent.close());
    return started;
  }

  return {
    async send(request) {
      const first = exchange(request);
      try {
        return await first.answer;
      } catch (failure) {
        const safe = request.method === 'GET' || request.method === 'HEAD';
        const lost = !first.responded && isLostConnection((failure as Error).cause);
        if (safe && lost && request.body === undefined) return exchange(request).answer;
        // undici leaves alone what it had not begun to send.
        request.body?.destroy();
        throw failure;
      }
    },
    async close() {
      if (!shared.closed) closing.push(shared.close());
      await Promise.all(closing);
    },
  };
}

/**
 * Connects to no address that was not vetted: names as they are looked up for this very connection,
 * literals here.
 */
function guardedConnector({
  allowPrivate,
  connectTimeoutMs,
  lookup,
}: {
  readonly allowPrivate: readonly Cidr[];
  readonly connectTimeoutMs: number;
  readonly lookup: Lookup;
}): buildConnector.connector {
  const connect = buildConnector({
    lookup: guardedLookup(lookup, allowPrivate),
    timeout: connectTimeoutMs,
    allowH2: false,
    autoSelectFamily: true,
    // Not left to NODE_TLS_REJECT_UNAUTHORIZED.
    rejectUnauthorized: true,
  });

  return ({ servername, ...options }, callback) => {
    // Node asks `lookup` for names only.
    const problem = isIP(options.hostname) && addressProblem(options.hostname, allowPrivate);
    if (problem) {
      process.nextTick(callback, refusedAddress(problem), null);
      return;
    }
    // Without TLS, undici would take the server name, which is the Host field, for the name to
    // connect to.
    const named = options.protocol === 'https:' && servername !== undefined;
    connect(named ? { ...options, servername } : options, callback);
  };
}

/**
 * Drops the addresses that may not be dialled from what a name leads to; fails when none is left.
 */
function guardedLookup(lookup: Lookup, allowPrivate: readonly Cidr[]): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname).then(
      (found) => {
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
