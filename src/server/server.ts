import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ListenAddress } from '../config/addresses.ts';
import type { Reply } from '../http/reply.ts';
import { defaultPorts } from '../model/authority.ts';
import type { Failure } from '../model/failure.ts';
import type { AccessLog } from '../observability/access.ts';
import { createLimitLog, type LimitLog } from '../observability/limit-log.ts';
import type { Log } from '../observability/log.ts';
import { joinedUse, type CacheUse } from '../observability/memory-use.ts';
import type { Metric } from '../observability/metrics.ts';
import type { RequestMetrics } from '../observability/request-metrics.ts';
import { RequestLog, type RequestStart } from './request-log.ts';
import { continueOnRead, isWhole } from './h1/body.ts';
import { Connections, peerAddress } from './h1/connections.ts';
import { crowdLimits, type ConnectionLimits } from './h1/connection-limiter.ts';
import type { Prepared, RequestMessage, SendingResponse } from './http-message.ts';
import { schemeOf, type IncomingRequest } from './incoming-request.ts';
import { Exchange, type ExchangeParts } from './exchange.ts';
import { contentFailure, loggedFailure } from './failures.ts';
import { enableHttp2 } from './h2/server.ts';
import { Http2Sessions } from './h2/sessions.ts';
import { createTryAnswer } from './h1-fast/try-answer.ts';
import { createHttpServer, createHttpsServer, listen, type Listener } from './listener.ts';
import { openMetrics } from './server-metrics.ts';
import { plainRequest, PreparedReplies, type PlainRequest } from './prepared.ts';
import { writeAndClose } from './h1/refusal.ts';
import { sendPrepared } from './send.ts';
import type { Serving } from './serving.ts';
import { createSharedLimits } from './shared-limits.ts';
import { createSockets, type Sockets } from './websocket/socket.ts';
import { answerChallenge } from './tls/challenge.ts';
import { withHsts } from './tls/hsts.ts';
import { redirectToHttps } from './tls/redirect.ts';
import { UpgradeHandler } from './h1/upgrade-handler.ts';
import type { Tls } from './tls/tls.ts';
import { Tunnels } from './h1/tunnels.ts';
import { opensWebsocket } from './h1/upgrade.ts';

/** What the port needs of its surroundings; `monotonicMs` measures durations. */
interface ServerParts {
  readonly serving: () => Serving;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
  readonly access: AccessLog;
  readonly metrics: RequestMetrics;
  readonly newId: () => string;
  readonly monotonicMs: () => number;
  readonly tls: Pick<Tls, 'certificates' | 'acme'>;
  /** Whether `h1-fast/` answers requests that Node's HTTP server need not see. */
  readonly hasFastPath?: boolean;
}

/** A response of Node's, or one that sends a reply in its own way. */
type Response = ServerResponse | SendingResponse;

/** The port: every listener of the configuration, with the websockets behind them. */
export interface Server {
  /** Where it can be reached, one text a listener. */
  readonly addresses: readonly string[];
  /** What is open at this moment. */
  metrics(): readonly Metric[];
  /** What is in memory of prepared answers. */
  memory(): CacheUse;
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
export async function startServer(
  parts: ServerParts,
  listens: readonly ListenAddress[],
): Promise<Server> {
  const port = new Port(parts);
  try {
    for (const where of listens) await port.listen(where);
  } catch (error) {
    await port.stop(0);
    throw error;
  }
  return port;
}

/** Frees what an answer holds that holds nothing. */
const nothingHeld = (): void => undefined;

class Port implements Server {
  readonly addresses: string[] = [];
  readonly #parts: ExchangeParts & ServerParts & ConnectionLimits;
  readonly #servers: Listener[] = [];
  readonly #prepared: PreparedReplies[] = [];
  readonly #sockets: Sockets;
  readonly #tunnels: Tunnels;
  readonly #answers: RequestLog;
  readonly #switching: UpgradeHandler;
  readonly #connections: Connections;
  readonly #sessions: Http2Sessions;
  /** Where requests in the clear are sent on to; undefined where nothing listens for TLS. */
  #tlsPort: string | undefined;
  #stopping = false;

  constructor(parts: ServerParts) {
    const log = createLimitLog(parts);
    const limits: LimitLog = {
      passed: (limit, ...known) => {
        log.passed(limit, ...known);
        if (limit !== 'open_files') return;
        this.#connections.closeIdle();
        this.#sessions.shedIdle();
      },
    };
    this.#parts = {
      ...parts,
      ...crowdLimits(() => parts.serving().config.server),
      limits,
      shared: createSharedLimits(),
      earlyReply: (serving, incoming, message) =>
        answerChallenge(incoming.target, parts.tls.acme) ??
        this.#redirect(serving, incoming, message),
    };
    this.#tunnels = new Tunnels({ ...parts, limit: this.#parts.shared.tunnels });
    this.#sessions = new Http2Sessions(this.#parts);
    this.#connections = new Connections({
      ...this.#parts,
      refuse: (...refused) => {
        this.#refuse(...refused);
      },
      ...limits,
    });
    this.#sockets = createSockets(this.#parts);
    this.#answers = new RequestLog(parts);
    this.#switching = new UpgradeHandler({
      exchangeParts: this.#parts,
      connections: this.#connections,
      sockets: this.#sockets,
      tunnels: this.#tunnels,
      answers: this.#answers,
      arrival: () => this.#arrival(),
      now: parts.now,
      isStopping: () => this.#stopping,
    });
  }

  async listen(where: ListenAddress): Promise<void> {
    const isTls = where.kind === 'tcp' && where.scheme === 'https';
    // Each listener has its own: what is answered over TLS is not what is answered without.
    const prepared = new PreparedReplies();
    this.#prepared.push(prepared);
    const answerAnew = (message: RequestMessage, response: Response): void => {
      if (isWhole(message)) this.#handle(message, response, prepared);
      else this.#answer(message, response, this.#arrival(), { plain: undefined, prepared });
    };
    const answerInTurn = (message: RequestMessage, response: Response): void => {
      const turn = this.#connections.turn(message, response);
      if (turn === true) this.#handle(message, response, prepared);
      else if (turn !== false) {
        void turn.then((isOpen) => {
          if (isOpen) answerAnew(message, response);
        });
      }
    };
    const { hasFastPath = true, now } = this.#parts;
    const tryAnswer = hasFastPath ? createTryAnswer(answerInTurn, now) : undefined;
    const server: Listener = isTls
      ? createHttpsServer(this.#connections, opensWebsocket, this.#parts.tls, { tryAnswer })
      : createHttpServer(this.#connections, opensWebsocket, { tryAnswer });
    if (isTls) enableHttp2(server, this.#sessions, answerAnew);
    server.on('request', answerInTurn);
    server.on('checkContinue', (message, response) => {
      continueOnRead(message, response);
      answerInTurn(message, response);
    });
    server.on('checkExpectation', answerInTurn);
    const leave = (message: IncomingMessage, socket: Duplex, head: Buffer): void => {
      this.#switching.leave(message, socket, head);
    };
    server.on('upgrade', leave);
    server.on('connect', leave);
    this.#servers.push(server);
    const address = await listen(server, where);
    this.addresses.push(address);
    if (!isTls) return;
    // The port that goes without saying comes before all others.
    const port = new URL(address).port || defaultPorts.https;
    if (this.#tlsPort === undefined || port === defaultPorts.https) this.#tlsPort = port;
  }

  metrics(): readonly Metric[] {
    return openMetrics({
      connections: this.#connections.size + this.#sessions.size,
      requests: this.#connections.owed + this.#sessions.owed,
      websockets: this.#sockets.size,
      tunnels: this.#tunnels.size,
      shared: this.#parts.shared,
    });
  }

  memory(): CacheUse {
    return joinedUse(
      'prepared answers',
      this.#prepared.map((prepared) => prepared.memory()),
    );
  }

  async stop(graceMs: number): Promise<{ readonly cut: number }> {
    this.#stopping = true;
    this.#connections.closeIdle();
    const closed = this.#servers
      .filter((server) => server.listening)
      .map((server) => new Promise((resolve) => server.close(resolve)));
    const sockets = this.#sockets.close(graceMs);
    const tunnels = this.#tunnels.close(graceMs);
    this.#sessions.close();
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([
      Promise.all([this.#connections.settled(), this.#sessions.clientsClosed()]),
      new Promise<void>((resolve) => {
        timer = setTimeout(resolve, graceMs);
      }),
    ]);
    clearTimeout(timer);
    const cut = this.#connections.owed + this.#sessions.owed;
    const cutSockets = await sockets;
    await tunnels;
    this.#sessions.destroyAll();
    this.#connections.destroyAll();
    await Promise.all(closed);
    return { cut: cut + cutSockets };
  }

  /** Answers a request, whatever happens: nothing of it reaches the process. */
  #handle(message: RequestMessage, response: Response, prepared: PreparedReplies): void {
    if (this.#stopping) response.shouldKeepAlive = false;
    const arrival = this.#arrival();
    const plain = plainRequest(message, schemeOf(message));
    const known = plain && prepared.find(plain, arrival.moment);
    const free = known && this.#hold(known, message.socket);
    if (plain === undefined || known === undefined || free === undefined) {
      this.#answer(message, response, arrival, { plain, prepared });
      return;
    }
    if (free !== nothingHeld) response.once('close', free);
    sendPrepared(response, known, arrival.moment.nowMs);
    const { bytes } = known;
    this.#answers.note(message, arrival, known, { address: peerAddress(message.socket), bytes });
  }

  /**
   * Counts the content of a prepared answer as unread until the returned function is called;
   * undefined where too much is: then the request is refused as any other.
   */
  #hold({ content }: Prepared, socket: Socket): (() => void) | undefined {
    if (typeof content !== 'object') return nothingHeld;
    const holder = { keyId: undefined, address: peerAddress(socket) };
    try {
      return this.#parts.shared.unread.hold(holder, [content]);
    } catch {
      return undefined;
    }
  }

  #arrival(): RequestStart {
    const { serving: servingNow, now, monotonicMs } = this.#parts;
    const serving = servingNow();
    serving.refresh();
    const moment = { serving, seq: serving.seq(), nowMs: now() };
    return { startedMs: monotonicMs(), moment };
  }

  /** Answers a request anew, whatever happens, and keeps the answer for others where it may. */
  #answer(
    message: RequestMessage,
    response: Response,
    arrival: RequestStart,
    {
      plain,
      prepared,
    }: { readonly plain: PlainRequest | undefined; readonly prepared: PreparedReplies },
  ): void {
    const { moment } = arrival;
    const exchange = new Exchange(this.#parts, moment, message, response);
    const answer = async (): Promise<void> => {
      const reply = withHsts(await exchange.reply(), moment.serving.config.tls, message);
      if (plain !== undefined) prepared.keep(plain, moment, reply);
      const { cut, bytes } = await exchange.send(reply);
      const { address, caller } = exchange;
      this.#answers.note(message, arrival, reply, { address, keyId: caller?.keyId, bytes, cut });
    };
    answer().catch((error: unknown) => {
      this.#parts.log.error({ err: error, id: this.#parts.newId() }, 'an answer failed');
      response.destroy();
    });
  }

  #redirect(
    { config }: Serving,
    { target }: IncomingRequest,
    message: RequestMessage,
  ): Reply | undefined {
    const { certificates } = this.#parts.tls;
    return redirectToHttps(message, target, { certificates, port: this.#tlsPort, config });
  }

  /** Answers a request that could not be read, and tells of it by what has come of its head. */
  #refuse(socket: Duplex, thrown: Failure, head: string): void {
    const address = peerAddress(socket);
    const { failure, id } = loggedFailure(this.#parts, thrown, address);
    const reply = contentFailure(failure, id, undefined);
    const bytes = writeAndClose(socket, reply, this.#parts.now());
    this.#answers.noteRefused(head, this.#arrival(), reply, { address, bytes });
  }
}
