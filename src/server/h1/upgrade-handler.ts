import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Reply } from '../../http/reply.ts';
import { Failure, stoppingFailure } from '../../model/failure.ts';
import { refusedTunnelBytesMax, refusedTunnelMs } from './limits.ts';
import { stalledMs } from '../limits.ts';
import { servicePath } from '../../model/path.ts';
import type { RequestLog, RequestStart } from '../request-log.ts';
import { peerAddress, type Connections } from './connections.ts';
import { acceptRequest, type IncomingRequest } from '../incoming-request.ts';
import type { ExchangeParts } from '../exchange.ts';
import { contentFailure, loggedFailure } from '../failures.ts';
import { isNodeResponse } from './node-http.ts';
import { writeAndClose } from './refusal.ts';
import type { Sockets } from '../websocket/socket.ts';
import type { Tunnels } from './tunnels.ts';
import { openWebsocket } from './upgrade.ts';

/** What the handler needs of the port. */
interface UpgradeParts {
  readonly exchangeParts: ExchangeParts;
  readonly connections: Connections;
  readonly sockets: Sockets;
  readonly tunnels: Tunnels;
  readonly requestLog: RequestLog;
  readonly start: () => RequestStart;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly isStopping: () => boolean;
}

/** A request to upgrade. */
interface Upgrade {
  readonly message: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly start: RequestStart;
}

/**
 * Answers requests with an Upgrade, and CONNECT, each when it is its turn: with a websocket of the
 * operations, with a websocket of a source, or with a refusal.
 */
export class UpgradeHandler {
  readonly #parts: UpgradeParts;

  constructor(parts: UpgradeParts) {
    this.#parts = parts;
  }

  handle(message: IncomingMessage, socket: Duplex, head: Buffer): void {
    const upgrade = { message, socket, head, start: this.#parts.start() };
    socket.on('error', () => socket.destroy());
    const owed = this.#parts.connections.lastAnswer(message.socket);
    if (owed === undefined) {
      void this.#answer(upgrade);
      return;
    }
    const carriedOn = this.#carryOn(message.socket);
    owed.once('close', () => {
      carriedOn();
      void this.#answer(upgrade);
    });
  }

  /**
   * Does for the answers that are still owed what Node does no more, once it has let go of their
   * connection: has them go on when the client has read, and ends them when it does not. Returns
   * what ends that.
   */
  #carryOn(socket: Socket): () => void {
    const { connections } = this.#parts;
    const drained = (): void => {
      const answer = connections.currentAnswer(socket);
      if (answer !== undefined && isNodeResponse(answer) && answer.writableNeedDrain)
        answer.emit('drain');
    };
    const silent = (): void => {
      connections.silent(socket, socket.timeout ?? stalledMs);
    };
    socket.on('drain', drained).on('timeout', silent);
    return () => {
      socket.off('drain', drained).off('timeout', silent);
    };
  }

  async #answer(upgrade: Upgrade): Promise<void> {
    const { exchangeParts, sockets, requestLog } = this.#parts;
    const { message, socket, head, start } = upgrade;
    if (!socket.writable) return;
    const { serving } = start.moment;
    let address = peerAddress(message.socket);
    const refuse = (reply: Reply): void => {
      const bytes = writeAndClose(socket, reply, this.#parts.now());
      requestLog.record(message, start, reply, { address, bytes });
    };
    try {
      this.#requireRunning();
      const incoming = acceptRequest(serving, message);
      address = incoming.address;
      const elsewhere = await exchangeParts.earlyReply(serving, incoming, message);
      if (elsewhere !== undefined) {
        refuse(elsewhere);
      } else if (servicePath(incoming.target.path, serving.config.server.base) === undefined) {
        const refusal = await this.#passOn(upgrade, incoming);
        if (refusal !== undefined) refuse(await gathered(refusal, socket));
      } else {
        const caller = openWebsocket(sockets, serving, { message, incoming, socket, head });
        const opened = { address, keyId: caller.keyId, bytes: 0 };
        requestLog.record(message, start, { status: 101, source: 'svc1' }, opened);
      }
    } catch (thrown) {
      const { failure, id } = loggedFailure(exchangeParts, thrown, address);
      refuse(contentFailure(failure, id, undefined));
    }
  }

  /** Has a source open the websocket; resolves to its answer where it does not. */
  async #passOn(upgrade: Upgrade, incoming: IncomingRequest): Promise<Reply | undefined> {
    const { tunnels, requestLog } = this.#parts;
    const { message, socket, head, start } = upgrade;
    const { site, visitors } = start.moment.serving;
    const gone = new AbortController();
    const abort = (): void => {
      gone.abort();
    };
    const place = tunnels.take(incoming.address);
    socket.once('close', abort);
    try {
      const opened = await site.openWebsocket({
        ...incoming.target,
        method: 'GET',
        fields: incoming.fields,
        address: incoming.address,
        visitor: visitors.visitorOf(incoming),
        body: undefined,
        signal: gone.signal,
      });
      if (!('connection' in opened)) return opened;
      if (gone.signal.aborted || this.#parts.isStopping()) opened.connection.destroy();
      this.#requireRunning();
      if (gone.signal.aborted) return undefined;
      place.open(socket, head, opened);
      const { address } = incoming;
      requestLog.record(
        message,
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
 * A reply with its content in memory. Throws `bad_gateway` where it is too much for a refusal, or
 * takes too long, or where nobody waits for it any more.
 */
async function gathered(reply: Reply, client: Duplex): Promise<Reply> {
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
  return new Failure('bad_gateway', 'The source does not open a websocket.');
}
