import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { consoleOriginReply } from '../../../modules/console/console.ts';
import { withoutOwnCookies } from '../../http/own-cookies.ts';
import type { Reply } from '../../http/reply.ts';
import { respelledReply } from '../../http/respelled.ts';
import type { Arrived, UpgradeRequest } from '../../pipeline/exchange.ts';
import { contentFailure, loggedFailure } from '../../pipeline/failures.ts';
import {
  type IncomingRequest,
  acceptRequest,
  countForRates,
} from '../../pipeline/incoming-request.ts';
import type { RequestLog, RequestStart } from '../../pipeline/record/request-log.ts';
import type { ResponderParts } from '../../pipeline/responder.ts';
import { runInSpan } from '../../report/trace.ts';
import { Failure, stoppingFailure } from '../../values/failure.ts';
import { servicePath } from '../../values/path.ts';
import { KIB } from '../../values/units.ts';
import { stalledMs } from '../limits.ts';
import type { Sockets } from '../websocket/socket.ts';
import type { Connections } from './connections.ts';
import { writeAndClose } from './refusal.ts';
import type { Tunnels } from './tunnels.ts';
import { openWebsocket } from './upgrade.ts';

/** Content of a source's refusal of a websocket, and the longest time for it to arrive. */
const refusedTunnelBytesMax = 64 * KIB;
const refusedTunnelMs = 10_000;

/** The parts of the port that the handler needs. */
interface UpgradeParts {
  readonly responderParts: ResponderParts;
  readonly connections: Connections;
  readonly sockets: Sockets;
  readonly tunnels: Tunnels;
  readonly requestLog: RequestLog;
  readonly start: (asked: Arrived) => RequestStart;
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
    const upgrade = { ...request, start: this.#parts.start(request) };
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
    const { span } = upgrade.start;
    if (span === undefined) void this.#answer(upgrade);
    else void runInSpan(span, () => this.#answer(upgrade));
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

  async #answer(upgrade: Upgrade): Promise<void> {
    const { responderParts, sockets, requestLog } = this.#parts;
    const { socket, start } = upgrade;
    if (!socket.writable) {
      start.span?.end({ error: 'cut' });
      return;
    }
    const { serving } = start.moment;
    let { address } = upgrade.peer;
    const refuse = (reply: Reply): void => {
      const bytes = writeAndClose(socket, reply, this.#parts.now());
      requestLog.record(upgrade, start, reply, { address, bytes });
    };
    try {
      this.#requireRunning();
      const incoming = acceptRequest(serving, upgrade);
      address = incoming.address;
      const elsewhere = incoming.isUnencoded
        ? respelledReply(incoming.target, 'none')
        : await responderParts.earlyReply(serving, incoming, upgrade);
      if (elsewhere === undefined) await countForRates(serving, incoming);
      const { base } = serving.config.server;
      const isService = servicePath(incoming.target.path, base) !== undefined;
      const { config } = serving;
      const away =
        elsewhere ?? (isService ? undefined : consoleOriginReply(config, incoming.target, 'GET'));
      if (away !== undefined) {
        refuse(away);
      } else if (!isService) {
        const refusal = await this.#passOn(upgrade, incoming);
        if (refusal !== undefined) refuse(await readContent(refusal, socket));
      } else {
        const caller = openWebsocket(sockets, serving, { ...upgrade, incoming });
        const opened = { address, keyId: caller.keyId, bytes: 0 };
        requestLog.record(upgrade, start, { status: 101, source: 'svc1' }, opened);
      }
    } catch (thrown) {
      const { failure, id } = loggedFailure(responderParts, thrown, address);
      refuse(contentFailure(failure, id, undefined));
    }
  }

  /** Switches to the protocol of a source; resolves to the source's answer if it refuses. */
  async #passOn(upgrade: Upgrade, incoming: IncomingRequest): Promise<Reply | undefined> {
    const { responderParts, tunnels, requestLog } = this.#parts;
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
    const unwatch = responderParts.signedIn.watch({ incoming, visitor, end });
    if (unwatch !== undefined) socket.once('close', unwatch);
    try {
      const { body } = upgrade;
      const opened = await site.upgrade({
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
      if (!('connection' in opened)) return opened;
      if (gone.signal.aborted || this.#parts.isStopping()) opened.connection.destroy();
      this.#requireRunning();
      if (gone.signal.aborted) return undefined;
      place.open(socket, ahead, opened);
      const { address } = incoming;
      requestLog.record(
        upgrade,
        start,
        { status: 101, source: opened.source },
        { address, bytes: 0 },
      );
      return undefined;
    } finally {
      socket.off('close', abort);
      place.release();
    }
  }

  #requireRunning(): void {
    if (this.#parts.isStopping()) throw stoppingFailure();
  }
}

/**
 * Reads the content of a reply into memory. Throws `bad_gateway` if it is too long for a refusal,
 * takes too long, or the client has closed the connection.
 */
async function readContent(reply: Reply, client: Duplex): Promise<Reply> {
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
