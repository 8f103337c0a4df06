import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { SignedInWatch } from '../../../modules/login/signed-in-watch.ts';
import { withoutOwnCookies } from '../../http/own-cookies.ts';
import { type Reply, noBody } from '../../http/reply.ts';
import type { UpgradeRequest } from '../../pipeline/exchange.ts';
import type { IncomingRequest } from '../../pipeline/incoming-request.ts';
import type { RequestStart } from '../../pipeline/record/request-log.ts';
import type { RequestHandler } from '../../pipeline/request-handler.ts';
import type { OpenProtocol } from '../../pipeline/responder.ts';
import { Failure, stoppingFailure } from '../../values/failure.ts';
import { servicePath } from '../../values/path.ts';
import { KIB } from '../../values/units.ts';
import { stalledMs } from '../limits.ts';
import type { Sockets } from '../websocket/socket.ts';
import type { Connections } from './connections.ts';
import type { Tunnels } from './tunnels.ts';
import { openWebsocket } from './upgrade.ts';
import { UpgradeExchange } from './upgrade-exchange.ts';

/** Content of a source's refusal of a websocket, and the longest time for it to arrive. */
const refusedTunnelBytesMax = 64 * KIB;
const refusedTunnelMs = 10_000;

/** The parts of the port that the handler needs. */
interface UpgradeParts {
  readonly handler: Pick<RequestHandler, 'start' | 'handleUpgrade'>;
  readonly connections: Connections;
  readonly sockets: Sockets;
  readonly tunnels: Tunnels;
  readonly signedIn: Pick<SignedInWatch, 'watch'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly isStopping: () => boolean;
}

/** A request for another protocol, and when it arrived. */
interface Upgrade extends UpgradeRequest {
  readonly start: RequestStart;
}

/**
 * Answers requests with an Upgrade, and CONNECT, after all answers before them: with a websocket of
 * the operations, with the protocol of a source, or with a refusal.
 */
export class UpgradeHandler {
  readonly #parts: UpgradeParts;

  constructor(parts: UpgradeParts) {
    this.#parts = parts;
  }

  handle(request: UpgradeRequest): void {
    const { socket, connection } = request;
    const upgrade = { ...request, start: this.#parts.handler.start(request) };
    socket.on('error', () => socket.destroy());
    const unfinished = connection && this.#parts.connections.unfinished(connection);
    if (unfinished === undefined) {
      this.#begin(upgrade);
      return;
    }
    const stop = this.#continueAnswers(unfinished.socket);
    unfinished.onClose(() => {
      stop();
      this.#begin(upgrade);
    });
  }

  #begin(upgrade: Upgrade): void {
    const { handler, now } = this.#parts;
    const { socket, start } = upgrade;
    if (!socket.writable) {
      start.span?.end({ error: 'cut' });
      return;
    }
    const exchange = new UpgradeExchange(upgrade, now);
    handler.handleUpgrade(exchange, start, (incoming) => this.#open(upgrade, incoming));
  }

  /**
   * Continues the earlier answers of a connection, which Node stops serving with the Upgrade:
   * writes more when the client has read, and applies the timeout. Returns a function that ends
   * this.
   */
  #continueAnswers(socket: Socket): () => void {
    const { connections } = this.#parts;
    const drained = (): void => {
      const response = connections.current(socket)?.response;
      if (response?.writableNeedDrain === true) response.emit('drain');
    };
    const silent = (): void => {
      connections.handleTimeout(socket, socket.timeout ?? stalledMs);
    };
    socket.on('drain', drained).on('timeout', silent);
    return () => {
      socket.off('drain', drained).off('timeout', silent);
    };
  }

  async #open(upgrade: Upgrade, incoming: IncomingRequest): ReturnType<OpenProtocol> {
    if (this.#parts.isStopping()) throw stoppingFailure();
    if (upgrade.failure !== undefined) throw upgrade.failure;
    const { serving } = upgrade.start.moment;
    if (servicePath(incoming.target.path, serving.config.server.base) === undefined) {
      return { reply: await this.#passOn(upgrade, incoming) };
    }
    const caller = openWebsocket(this.#parts.sockets, serving, { ...upgrade, incoming });
    return { reply: openedBy('svc1'), caller };
  }

  /** Switches to the protocol of a source; resolves to the source's answer if it refuses. */
  async #passOn(upgrade: Upgrade, incoming: IncomingRequest): Promise<Reply> {
    const { tunnels, signedIn } = this.#parts;
    const { socket, ahead, start } = upgrade;
    const { site, visitors } = start.moment.serving;
    const gone = new AbortController();
    const abort = (): void => {
      gone.abort();
    };
    const place = tunnels.take(incoming.address);
    socket.once('close', abort);
    // A stream of HTTP/2 may have been reset in the turn in which it began.
    if (socket.destroyed) abort();
    const visitor = visitors.visitorOf(incoming);
    const end = (): void => {
      socket.destroy();
    };
    const unwatch = signedIn.watch({ incoming, visitor, end });
    if (unwatch !== undefined) socket.once('close', unwatch);
    try {
      const { body } = upgrade;
      const opened = await site.open({
        ...incoming.target,
        method: upgrade.head.method,
        version: upgrade.head.version,
        fields: withoutOwnCookies(incoming.fields),
        address: incoming.address,
        visitor,
        body,
        trailers: body && (() => body.rawTrailers),
        signal: gone.signal,
      });
      if (!('connection' in opened)) return await withContent(opened, socket);
      if (gone.signal.aborted || this.#parts.isStopping()) {
        opened.connection.destroy();
        throw stoppingFailure();
      }
      place.open(socket, ahead, opened);
      return openedBy(opened.source);
    } finally {
      socket.off('close', abort);
      place.release();
    }
  }
}

/** The reply that stands for an open protocol. */
function openedBy(source: string): Reply {
  return { status: 101, source, fields: [], body: noBody };
}

/**
 * Reads the content of a reply into memory. Throws `bad_gateway` if it is too long for a refusal,
 * takes too long, or the client has closed the connection.
 */
async function withContent(reply: Reply, client: Duplex): Promise<Reply> {
  if (reply.body.kind !== 'stream') return reply;
  const { stream } = reply.body;
  const giveUp = (): void => {
    stream.destroy(notOpened());
  };
  client.once('close', giveUp);
  if (client.destroyed) giveUp();
  const timer = setTimeout(giveUp, refusedTunnelMs);
  try {
    const chunks: Buffer[] = [];
    let bytesLength = 0;
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      bytesLength += chunk.length;
      if (bytesLength > refusedTunnelBytesMax) throw notOpened();
      chunks.push(chunk);
    }
    return { ...reply, body: { kind: 'bytes', bytes: Buffer.concat(chunks) } };
  } finally {
    clearTimeout(timer);
    client.off('close', giveUp);
  }
}

function notOpened(): Failure {
  return new Failure(
    'bad_gateway',
    'The source does not switch to the protocol, and its answer is too long.',
  );
}
