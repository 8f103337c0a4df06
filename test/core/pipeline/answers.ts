import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';

/** A response as it was received, without its framing. */
export interface RawAnswer {
  readonly statusLine: string;
  /** Header lines in order, unchanged. */
  readonly fields: readonly string[];
  readonly content: string;
  /** Heads of the interim responses (1xx) before it. */
  readonly ahead: readonly string[];
}

/** Reads the responses on a connection one by one (RFC 9112 §6.3), latin1. */
export class AnswerReader {
  readonly #socket: Duplex;
  #held = '';
  #isOver = false;

  constructor(socket: Duplex) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#held += chunk.toString('latin1');
    });
    const over = (): void => {
      this.#isOver = true;
    };
    socket.once('end', over).once('close', over);
  }

  /** Resolves to the next response; rejects if the connection ends before it is complete. */
  async next(method = 'GET'): Promise<RawAnswer> {
    const ahead: string[] = [];
    let head = await this.#upTo('\r\n\r\n');
    while (/^HTTP\/1\.1 1(?!01)/.test(head)) {
      ahead.push(head);
      head = await this.#upTo('\r\n\r\n');
    }
    const [statusLine = '', ...fields] = head.slice(0, -4).split('\r\n');
    return { statusLine, fields, content: await this.#content(method, statusLine, fields), ahead };
  }

  /** Resolves, once the connection has ended, to the bytes after the last response. */
  async rest(): Promise<string> {
    while (!this.#isOver) await this.#more();
    return this.#held;
  }

  async #content(method: string, statusLine: string, fields: readonly string[]): Promise<string> {
    if (method === 'HEAD' || /^HTTP\/1\.1 (?:101|204|304) /.test(statusLine)) return '';
    const framing = fields.filter((line) => /^(?:content-length|transfer-encoding):/i.test(line));
    assert.equal(framing.length, 1, `an end is told in one way: ${fields.join(', ')}`);
    const [line = ''] = framing;
    if (/: chunked$/i.test(line)) return this.#chunks();
    return this.#take(Number(line.split(': ')[1]));
  }

  async #chunks(): Promise<string> {
    let content = '';
    for (;;) {
      const size = Number.parseInt(await this.#upTo('\r\n'), 16);
      content += await this.#take(size);
      assert.equal(await this.#take(2), '\r\n');
      if (size === 0) return content;
    }
  }

  async #upTo(mark: string): Promise<string> {
    while (!this.#held.includes(mark)) await this.#more();
    return this.#take(this.#held.indexOf(mark) + mark.length);
  }

  async #take(length: number): Promise<string> {
    while (this.#held.length < length) await this.#more();
    const taken = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    return taken;
  }

  async #more(): Promise<void> {
    if (this.#isOver) throw new Error(`the connection has ended behind: ${this.#held}`);
    const waiting = new AbortController();
    const events = ['data', 'end', 'close'].map((name) =>
      once(this.#socket, name, { signal: waiting.signal }).catch(() => undefined),
    );
    await Promise.race(events);
    waiting.abort();
  }
}
