import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Duplex } from 'node:stream';
import type { FieldList } from '../../http/reply.ts';
import type { StreamAnswer, StreamContent } from './stream-answer.ts';
import type { StreamMessage } from './stream-message.ts';

type Done = (error?: Error | null) => void;

/**
 * Returns an extended CONNECT for a websocket (RFC 8441 §5) as a request with an Upgrade of
 * HTTP/1.1, and its stream as the connection after that, so that one handler opens all websockets.
 */
export function upgradeOf(
  message: StreamMessage,
  answer: StreamAnswer,
): [message: IncomingMessage, socket: Duplex, head: Buffer] {
  const added = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    // HTTP/2 has no key; the answer to this one goes nowhere.
    'sec-websocket-key': randomBytes(16).toString('base64'),
  };
  const asked = {
    method: 'GET',
    url: message.url,
    httpVersion: '1.1',
    httpVersionMajor: 1,
    httpVersionMinor: 1,
    isHttp2: true,
    rawHeaders: [...withoutKey(message.rawHeaders), ...Object.entries(added).flat()],
    headers: { ...message.headers, ...added },
    socket: message.socket,
    complete: true,
  };
  return [
    asked as unknown as IncomingMessage,
    new UpgradedStream(message, answer),
    Buffer.alloc(0),
  ];
}

/** Leaves out a key of the client, which would be a second one for a source. */
function withoutKey(rawHeaders: readonly string[]): readonly string[] {
  return rawHeaders.filter((_, at) => rawHeaders[at - (at % 2)] !== 'sec-websocket-key');
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
  readonly #message: StreamMessage;
  readonly #answer: StreamAnswer;
  #head = '';
  #content: StreamContent | undefined;

  constructor(message: StreamMessage, answer: StreamAnswer) {
    super();
    this.#message = message;
    this.#answer = answer;
    message.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) message.pause();
    });
    message.once('end', () => this.push(null));
    message.once('error', ignore).once('close', () => {
      if (!message.complete) this.destroy();
    });
    answer.once('close', () => {
      if (!answer.writableFinished) this.destroy();
    });
  }

  override _read(): void {
    this.#message.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
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
    this.#content = this.#answer.writeHead(status === 101 ? 200 : status, fields);
    this.#content.flushHeaders();
    if (rest.length > 0) this.#content.write(rest, done);
    else done();
  }

  override _final(done: Done): void {
    if (this.#content === undefined) done();
    else this.#content.end(done);
  }

  override _destroy(error: Error | null, done: Done): void {
    if (this.#content === undefined) this.#answer.destroy();
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
