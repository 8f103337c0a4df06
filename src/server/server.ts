import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Listen } from '../config/config.ts';
import { plainAddress } from '../http/forwarded.ts';
import type { Reply } from '../http/reply.ts';
import { defaultPorts } from '../model/authority.ts';
import { Failure, failureFrom } from '../model/failure.ts';
import { servicePath } from '../model/path.ts';
import type { AccessEntry, AccessLog } from '../observe/access.ts';
import type { Log } from '../observe/log.ts';
import { single, type Metric } from '../observe/metrics.ts';
import type { RequestMetrics } from '../observe/request-metrics.ts';
import { Connections } from './connections.ts';
import { enter, identify, withoutUser, type Entrance } from './entrance.ts';
import { Exchange, type ExchangeParts } from './exchange.ts';
import { contentFailure } from './failures.ts';
import { speakHttp2 } from './http2/server.ts';
import { Sessions } from './http2/sessions.ts';
import { createHttpServer, createHttpsServer, listen, type Listener } from './listener.ts';
import { PreparedReplies, type Moment } from './prepared.ts';
import { sendPrepared } from './send.ts';
import type { Serving } from './serving.ts';
import { createSockets, type Sockets } from './socket.ts';
import type { Certificates } from './tls/certificates.ts';
import { withHsts } from './tls/hsts.ts';
import { redirectToHttps } from './tls/redirect.ts';
import { refuseUpgrade, requireAllowedOrigin } from './upgrade.ts';

/** What the port needs of its surroundings; `monotonicMs` measures durations. */
export interface ServerParts {
  readonly serving: () => Serving;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
  readonly access: AccessLog;
  readonly metrics: RequestMetrics;
  readonly newId: () => string;
  readonly monotonicMs: () => number;
  readonly certificates: Certificates;
}

/** The port: every listener of the configuration, with the websockets behind them. */
export interface Server {
  /** Where it can be reached, one text a listener. */
  readonly addresses: readonly string[];
  /** What is open at this moment. */
  metrics(): readonly Metric[];
  /**
   * Stops taking connections, lets requests in flight end, and cuts what is left after the grace;
   * resolves to how many requests and websockets that were.
   */
  stop(graceMs: number): Promise<{ readonly cut: number }>;
}

/**
 * Opens the listeners. Rejects with `unavailable` when one cannot be had; the others are closed
 * again.
 */
export async function startServer(parts: ServerParts, listens: readonly Listen[]): Promise<Server> {
  const port = new Port(parts);
  try {
    for (const where of listens) await port.listen(where);
  } catch (error) {
    await port.stop(0);
    throw error;
  }
  return port;
}

/** When a request came, and what held then. */
interface Arrival {
  readonly startedMs: number;
  readonly moment: Moment;
}

/** What the access log says of an answer besides what it is. */
type Noted = Pick<AccessEntry, 'address' | 'keyId' | 'bytes' | 'cut'>;

class Port implements Server {
  readonly addresses: string[] = [];
  readonly #parts: ServerParts;
  readonly #exchangeParts: ExchangeParts;
  readonly #servers: Listener[] = [];
  readonly #sockets: Sockets;
  readonly #connections = new Connections();
  readonly #sessions: Sessions;
  /** Where requests in the clear are sent on to; undefined where nothing listens for TLS. */
  #tlsPort: string | undefined;
  #stopping = false;

  constructor(parts: ServerParts) {
    this.#parts = parts;
    this.#sessions = new Sessions(parts);
    this.#exchangeParts = {
      log: parts.log,
      newId: parts.newId,
      redirect: (serving, entrance, message) => this.#redirect(serving, entrance, message),
    };
    this.#sockets = createSockets(parts);
  }

  async listen(where: Listen): Promise<void> {
    const isTls = where.kind === 'tcp' && where.scheme === 'https';
    const shouldUpgrade = (upgrade: string): boolean => upgrade.toLowerCase() === 'websocket';
    // Each listener has its own: what is answered over TLS is not what is answered without.
    const prepared = new PreparedReplies();
    const answer = (message: IncomingMessage, response: ServerResponse): void => {
      this.#handle(message, response, prepared);
    };
    const server: Listener = isTls
      ? createHttpsServer(this.#connections, shouldUpgrade, this.#parts.certificates)
      : createHttpServer(this.#connections, shouldUpgrade);
    if (isTls) speakHttp2(server, this.#sessions, answer);
    server.on('request', (message, response) => {
      const turn = this.#connections.turn(message, response);
      if (turn === true) answer(message, response);
      else if (turn !== false) {
        void turn.then((isOpen) => {
          if (isOpen) answer(message, response);
        });
      }
    });
    server.on('upgrade', (message: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.#upgrade(message, socket, head);
    });
    this.#servers.push(server);
    const address = await listen(server, where);
    this.addresses.push(address);
    if (!isTls) return;
    // The port that goes without saying comes before all others.
    const port = new URL(address).port || defaultPorts.https;
    if (this.#tlsPort === undefined || port === defaultPorts.https) this.#tlsPort = port;
  }

  metrics(): readonly Metric[] {
    return [
      single('gauge', 'waymark_connections', {
        help: 'Open connections, websockets included.',
        value: this.#connections.size + this.#sessions.size,
      }),
      single('gauge', 'waymark_requests_in_flight', {
        help: 'Requests over HTTP that are being answered.',
        value: this.#connections.owed + this.#sessions.owed,
      }),
      single('gauge', 'waymark_websockets', {
        help: 'Open websockets.',
        value: this.#sockets.size,
      }),
    ];
  }

  async stop(graceMs: number): Promise<{ readonly cut: number }> {
    this.#stopping = true;
    const closed = this.#servers
      .filter((server) => server.listening)
      .map((server) => new Promise((resolve) => server.close(resolve)));
    const sockets = this.#sockets.close(graceMs);
    this.#sessions.close();
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([
      Promise.all([this.#connections.settled(), this.#sessions.settled()]),
      new Promise<void>((resolve) => {
        timer = setTimeout(resolve, graceMs);
      }),
    ]);
    clearTimeout(timer);
    const cut = this.#connections.owed + this.#sessions.owed;
    const cutSockets = await sockets;
    this.#sessions.destroyAll();
    this.#connections.destroyAll();
    await Promise.all(closed);
    return { cut: cut + cutSockets };
  }

  /** Answers a request, whatever happens: nothing of it reaches the process. */
  #handle(message: IncomingMessage, response: ServerResponse, prepared: PreparedReplies): void {
    if (this.#stopping) response.shouldKeepAlive = false;
    const arrival: Arrival = {
      startedMs: this.#parts.monotonicMs(),
      moment: this.#moment(),
    };
    const known = prepared.find(message, arrival.moment);
    if (known === undefined) {
      this.#answer(message, response, arrival, prepared).catch((error: unknown) => {
        this.#parts.log.error({ err: error, id: this.#parts.newId() }, 'an answer failed');
        response.destroy();
      });
      return;
    }
    sendPrepared(response, known);
    this.#note(message, arrival, known, {
      address: plainAddress(message.socket.remoteAddress ?? ''),
      keyId: undefined,
      bytes: known.bytes,
      cut: false,
    });
  }

  #moment(): Moment {
    const serving = this.#parts.serving();
    return { serving, seq: serving.seq(), nowMs: this.#parts.now() };
  }

  async #answer(
    message: IncomingMessage,
    response: ServerResponse,
    arrival: Arrival,
    prepared: PreparedReplies,
  ): Promise<void> {
    const { serving } = arrival.moment;
    const exchange = new Exchange(this.#exchangeParts, serving, message, response);
    const reply = withHsts(await exchange.reply(), serving.config.tls, message);
    prepared.keep(message, arrival.moment, reply);
    const { cut, bytes } = await exchange.send(reply);
    const { address, caller } = exchange;
    this.#note(message, arrival, reply, { address, keyId: caller?.keyId, bytes, cut });
  }

  #redirect(
    { config }: Serving,
    { target }: Entrance,
    message: IncomingMessage,
  ): Reply | undefined {
    const { certificates } = this.#parts;
    return redirectToHttps(message, target, { certificates, port: this.#tlsPort, config });
  }

  #note(
    message: IncomingMessage,
    { startedMs, moment }: Arrival,
    { status, source }: Pick<Reply, 'status' | 'source'>,
    { address, keyId, bytes, cut }: Noted,
  ): void {
    const durationMs = this.#parts.monotonicMs() - startedMs;
    this.#parts.metrics.add(status, source, durationMs);
    if (!moment.serving.config.log.access) return;
    this.#parts.access.add({
      address,
      method: message.method ?? '',
      target: message.url ?? '',
      host: hostOf(message),
      status,
      bytes,
      durationMs,
      source,
      keyId,
      cut,
    });
  }

  #upgrade(message: IncomingMessage, socket: Duplex, head: Buffer): void {
    const serving = this.#parts.serving();
    socket.on('error', () => socket.destroy());
    try {
      if (this.#stopping) {
        throw new Failure('unavailable', 'The server is stopping.', { retryAfterSeconds: 1 });
      }
      const entrance = enter(serving, message);
      const elsewhere = this.#redirect(serving, entrance, message);
      if (elsewhere !== undefined) {
        refuseUpgrade(socket, elsewhere);
        return;
      }
      if (servicePath(entrance.target.path, serving.config.server.base) !== '/ws') {
        throw new Failure('not_found', 'There is no websocket here.');
      }
      const { target, fields } = entrance;
      const { corsOrigins } = serving.config.auth;
      const isOwn = requireAllowedOrigin(fields.origin, target.origin, corsOrigins);
      const asking = isOwn ? entrance : withoutUser(entrance);
      const caller = identify(serving, asking);
      const { told } = asking;
      this.#sockets.open(message, socket, head, {
        caller,
        origin: target.origin,
        fields: asking.fields,
        told,
      });
    } catch (thrown) {
      refuseUpgrade(socket, contentFailure(failureFrom(thrown), this.#parts.newId(), undefined));
    }
  }
}

/** The Host field, without making the object of all fields that a request may not have yet. */
function hostOf({ rawHeaders }: IncomingMessage): string {
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (name.length === 4 && name.toLowerCase() === 'host') return rawHeaders[at + 1] ?? '';
  }
  return '';
}
