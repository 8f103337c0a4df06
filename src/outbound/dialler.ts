import type { Readable } from 'node:stream';
import type { Cidr } from '../model/cidr.ts';
import { isIdempotent } from '../model/method.ts';
import { createAgents } from './agents.ts';
import { OneShotRequest, type BriefAnswer, type BriefRequest } from './one-shot-request.ts';
import { guardedConnector } from './connector.ts';
import { OutboundExchange, type SourceResponse, type OutboundExchangeParts } from './exchange.ts';
import { isLostConnection } from './failure.ts';
import { createLookup, type Lookup } from './names.ts';

/** A request to another server. */
export interface OutboundRequest extends OutboundExchangeParts {
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
  /** The protocol to go over to (RFC 9110 §7.8); the source may answer in HTTP all the same. */
  readonly upgrade?: 'websocket';
}

/**
 * The only way out to other servers: pooled connections to addresses that were vetted
 * (docs/design/webhooks.md#addresses, Addresses).
 */
export interface Dialler {
  /**
   * Sends a request and resolves to its answer, whatever its status: redirects are not followed,
   * content is not decoded. Rejects with `bad_gateway` (down, refused address, no HTTP, broken
   * off), `gateway_timeout`, `invalid` (a field that cannot be sent), or the Failure that the body
   * was destroyed with. Where a connection that had been used before ends before an answer begins,
   * an idempotent request without content is sent once more, over a new one (RFC 9110 §9.2.2), and
   * so is any other of which nothing had been sent.
   */
  send(request: OutboundRequest): Promise<SourceResponse>;
  /**
   * Sends a request of a few bytes and reads the beginning of its answer, all of it within
   * `timeoutMs`. Never rejects. Where a connection that had been used before ends before an answer
   * begins, the request is sent once more, over a new one, whatever its method.
   */
  exchange(request: BriefRequest): Promise<BriefAnswer>;
  /**
   * Lets what is under way end, then closes the connections. A request sent later gets a connection
   * of its own.
   */
  close(): Promise<void>;
  /** Breaks off what is under way; nothing is sent any more. */
  cut(): void;
}

/** How a dialler connects: see createDialler. */
interface DiallerOptions {
  readonly allowPrivate: readonly Cidr[];
  readonly connectTimeoutMs: number;
  readonly timeoutMs: number;
  readonly ca?: readonly string[] | undefined;
  readonly lookup?: Lookup;
  readonly localAddress?: string | undefined;
}

/**
 * Makes a dialler. `connectTimeoutMs` bounds looking a name up, connecting and TLS; `timeoutMs` the
 * wait for the header section, and for each further piece of content, and the whole of a brief
 * exchange. `lookup` is that of createLookup unless given, `ca` (PEM: who may vouch for a server)
 * what Node trusts. Connections come from `localAddress`, an address of this machine, where given.
 */
export function createDialler(options: DiallerOptions): Dialler {
  const { connectTimeoutMs, timeoutMs, ca, lookup = createLookup(), localAddress } = options;
  const connect = guardedConnector({ ...options, ca, lookup, localAddress });
  const agents = createAgents({ connect, timeoutMs });

  function dispatch(
    request: BriefRequest | OutboundRequest,
    handler: OutboundExchange | OneShotRequest,
    how: 'pooled' | 'alone' = 'pooled',
  ): void {
    const { origin, target: path, method, body = null } = request;
    const headers = request.fields as string[];
    const upgrade = 'upgrade' in request ? request.upgrade : undefined;
    // Nothing is sent behind another request on its connection: undici need not mark one as busy.
    const options = { origin, path, method, headers, body, blocking: false };
    agents.dispatch(upgrade === undefined ? options : { ...options, upgrade }, handler, how);
  }

  function begin(request: OutboundRequest, how: 'pooled' | 'alone'): OutboundExchange {
    const started = new OutboundExchange(request);
    if (request.signal.aborted) return started;
    dispatch(request, started, how);
    started.startWithin(connectTimeoutMs + timeoutMs);
    return started;
  }

  return {
    send(request) {
      const first = begin(request, 'pooled');
      const giveUp = (failure: unknown): never => {
        // undici leaves alone what it had not begun to send.
        request.body?.destroy();
        throw failure;
      };
      return first.answer.catch((failure: unknown) => {
        const lost =
          first.wasUsed && !first.responded && isLostConnection((failure as Error).cause);
        const isRepeatable = request.body === undefined && isIdempotent(request.method);
        if (lost && (isRepeatable || !first.hasBegun)) {
          // What else is in the pool may have ended as well.
          return begin(request, 'alone').answer.catch(giveUp);
        }
        return giveUp(failure);
      });
    },
    exchange(request) {
      const started = new OneShotRequest(request, timeoutMs, (again) => {
        dispatch(request, again, 'alone');
      });
      if (request.signal?.aborted !== true) dispatch(request, started);
      return started.answer;
    },
    close: () => agents.close(),
    cut: () => {
      agents.cut();
    },
  };
}
