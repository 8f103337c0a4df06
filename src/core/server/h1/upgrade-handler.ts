import type { Duplex } from 'node:stream';
import { type Reply, noBody } from '../../http/reply.ts';
import type { UpgradeRequest } from '../../pipeline/exchange.ts';
import type { StepRequest } from '../../pipeline/pipeline.ts';
import type { RequestStart } from '../../pipeline/record/request-log.ts';
import type { RequestHandler } from '../../pipeline/request-handler.ts';
import type { OpenProtocol } from '../../pipeline/responder.ts';
import { Failure, stoppingFailure } from '../../values/failure.ts';
import { servicePath } from '../../values/path.ts';
import { KIB } from '../../values/units.ts';
import type { Sockets } from '../websocket/socket.ts';
import type { Tunnels } from './tunnels.ts';
import { openWebsocket } from './upgrade.ts';
import { UpgradeExchange } from './upgrade-exchange.ts';

/** Content of a source's refusal of a websocket, and the longest time for it to arrive. */
const refusedTunnelBytesMax = 64 * KIB;
const refusedTunnelMs = 10_000;

/** The parts of the port that the handler needs. */
interface UpgradeParts {
  readonly handler: Pick<RequestHandler, 'start' | 'handleUpgrade'>;
  readonly sockets: Sockets;
  readonly tunnels: Tunnels;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly isStopping: () => boolean;
}

/** A request for another protocol, and when it arrived. */
interface Upgrade extends UpgradeRequest {
  readonly start: RequestStart;
}

/**
 * Answers requests with an Upgrade, and CONNECT: with a websocket of the operations, with the
 * protocol of a source, or with a refusal.
 */
export class UpgradeHandler {
  readonly #parts: UpgradeParts;

  constructor(parts: UpgradeParts) {
    this.#parts = parts;
  }

  handle(request: UpgradeRequest): void {
    const upgrade = { ...request, start: this.#parts.handler.start(request) };
    request.socket.on('error', () => request.socket.destroy());
    const { handler, now } = this.#parts;
    const { socket, start } = upgrade;
    if (!socket.writable) {
      start.span?.end({ error: 'cut' });
      return;
    }
    const exchange = new UpgradeExchange(upgrade, now);
    handler.handleUpgrade(exchange, start, (asked) => this.#open(upgrade, asked));
  }

  async #open(upgrade: Upgrade, request: StepRequest): ReturnType<OpenProtocol> {
    if (this.#parts.isStopping()) throw stoppingFailure();
    if (upgrade.failure !== undefined) throw upgrade.failure;
    const { serving } = upgrade.start.moment;
    if (request.sent === undefined) throw new TypeError('no client has sent the request');
    const { incoming } = request.sent;
    if (servicePath(request.path, serving.config.server.base) === undefined) {
      return { reply: await this.#passOn(upgrade, request) };
    }
    const caller = openWebsocket(this.#parts.sockets, serving, { ...upgrade, incoming });
    return { reply: openedBy('svc1'), caller };
  }

  /** Switches to the protocol of a source; resolves to the source's answer if it refuses. */
  async #passOn(upgrade: Upgrade, request: StepRequest): Promise<Reply> {
    const { socket, ahead, start } = upgrade;
    const gone = new AbortController();
    const abort = (): void => {
      gone.abort();
    };
    const place = this.#parts.tunnels.take(request.address);
    socket.once('close', abort);
    // A stream of HTTP/2 may have been reset in the turn in which it began.
    if (socket.destroyed) abort();
    try {
      const { site } = start.moment.serving;
      const opened = await site.open({ ...request, signal: gone.signal });
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
