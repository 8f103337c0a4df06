import { randomBytes } from 'node:crypto';
import { Duplex } from 'node:stream';
import type { FieldList } from '../../http/reply.ts';
import type { UpgradeRequest } from '../../pipeline/exchange.ts';
import { Failure } from '../../values/failure.ts';
import { http2JoinedBytesMax } from './limits.ts';
import type { StreamBody } from './stream-body.ts';
import type { StreamContent, StreamExchange } from './stream-exchange.ts';

type Done = (error?: Error | null) => void;

/**
 * Returns an extended CONNECT for a websocket (RFC 8441 §5) as a request with an Upgrade of
 * HTTP/1.1, and its stream as the connection after that, so that one handler opens all websockets.
 */
export function upgradeOf(
  exchange: StreamExchange,
  { isWebsocket }: { readonly isWebsocket: boolean },
): UpgradeRequest {
  const { head, peer, content } = exchange;
  const sent = withoutKey(head.fields);
  const added = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    // HTTP/2 has no key; the answer to this one goes nowhere.
    'sec-websocket-key': randomBytes(16).toString('base64'),
  };
  return {
    head: { ...head, method: 'GET', fields: [...sent, ...Object.entries(added).flat()] },
    peer,
    socket: new UpgradedStream(exchange, content),
    failure: refusalOf(isWebsocket, content),
    body: undefined,
    ahead: Buffer.alloc(0),
    handshake: { method: 'GET', headers: { ...firstValues(sent), ...added } },
  };
}

function refusalOf(isWebsocket: boolean, content: StreamBody | undefined): Failure | undefined {
  if (!isWebsocket) {
    // RFC 9220 §3 recommends the status.
    const message = 'Over HTTP/2, this server switches to websocket only.';
    return new Failure('invalid', message, { status: 501 });
  }
  if (content !== undefined) return undefined;
  return new Failure('invalid', 'The client has ended the stream of its websocket.');
}

function firstValues(fields: FieldList): Readonly<Record<string, string>> {
  const values = Object.create(null) as Record<string, string>;
  for (let at = 0; at < fields.length; at += 2) values[fields[at] ?? ''] ??= fields[at + 1] ?? '';
  return values;
}

/** Leaves out a key of the client, which would be a second one for a source. */
function withoutKey(fields: FieldList): FieldList {
  return fields.filter((_, at) => fields[at - (at % 2)] !== 'sec-websocket-key');
}

/** Fields of an answer of HTTP/1.1 that its connection needs, and HTTP/2 does not have. */
const connectionFields: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'sec-websocket-accept',
  'transfer-encoding',
  'upgrade',
]);
const headEnd = '\r\n\r\n';

/** A stream whose writer begins with the head of an answer in the form of HTTP/1.1. */
class UpgradedStream extends Duplex {
  readonly #exchange: StreamExchange;
  readonly #received: StreamBody | undefined;
  #head = '';
  #content: StreamContent | undefined;

  /** `received`: undefined if the client has ended the stream. */
  constructor(exchange: StreamExchange, received: StreamBody | undefined) {
    super();
    this.#exchange = exchange;
    this.#received = received;
    exchange.onClose(() => {
      if (!exchange.isSent) this.destroy();
    });
    if (received === undefined) {
      this.push(null);
      return;
    }
    received.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) received.pause();
    });
    received.once('end', () => this.push(null));
    received.once('error', ignore).once('close', () => {
      if (!received.complete) this.destroy();
    });
  }

  override _read(): void {
    this.#received?.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    this.#send(chunk, done);
  }

  #send(chunk: Buffer, done: Done): void {
    if (this.#content !== undefined) {
      this.#content.write(chunk, done);
      return;
    }
    this.#head += chunk.toString('latin1');
    const end = this.#head.indexOf(headEnd);
    if (end === -1) {
      done();
      return;
    }
    const rest = Buffer.from(this.#head.slice(end + headEnd.length), 'latin1');
    const { status, fields } = readHead(this.#head.slice(0, end + headEnd.length));
    this.#content = this.#exchange.beginAnswer(status === 101 ? 200 : status, fields);
    this.#content.sendHead();
    if (rest.length > 0) this.#content.write(rest, done);
    else done();
  }

  /** Writes short pieces as one: head and text of a message would be two frames of HTTP/2. */
  override _writev(pieces: readonly { readonly chunk: Buffer }[], done: Done): void {
    const chunks = pieces.map(({ chunk }) => chunk);
    const content = this.#content;
    if (content === undefined || this.writableLength <= http2JoinedBytesMax) {
      this.#send(Buffer.concat(chunks), done);
      return;
    }
    for (const chunk of chunks.slice(0, -1)) content.write(chunk);
    content.write(chunks.at(-1), done);
  }

  override _final(done: Done): void {
    if (this.#content === undefined) done();
    else this.#content.end(done);
  }

  override _destroy(error: Error | null, done: Done): void {
    if (this.#content === undefined) this.#exchange.destroy();
    else this.#content.destroy();
    done(error);
  }
}

const ignore = (): void => undefined;

/** Reads a head that the server itself has written. */
function readHead(text: string): { readonly status: number; readonly fields: FieldList } {
  const lines = text.split('\r\n').filter((line) => line !== '');
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(lines[0] ?? '')?.[1]);
  const fields = lines.slice(1).flatMap((line) => {
    const at = line.indexOf(':');
    const name = line.slice(0, at).toLowerCase();
    return connectionFields.has(name) ? [] : [name, line.slice(at + 1).trim()];
  });
  return { status, fields };
}
