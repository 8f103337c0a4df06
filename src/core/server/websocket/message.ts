import { type Execute, authorise } from '../../operations/execute.ts';
import {
  type Envelope,
  envelopeFrom,
  envelopeOutline,
  parseJson,
  requireParsable,
} from '../../operations/http/envelope.ts';
import { operationBytesMax } from '../../operations/http/operations.ts';
import { readBodyBytesMax } from '../../operations/limits.ts';
import { Failure } from '../../values/failure.ts';
import { parseJson as parsed } from '../../values/json/exact-number.ts';
import type { JsonMember, JsonOutline } from '../../values/json/json-outline.ts';
import type { Caller } from '../../values/key.ts';
import { jsonDepthMax } from '../../values/limits.ts';

/** The name of an operation, and the id, in a websocket message, as JSON. */
const operationNameBytesMax = 256;
const messageIdBytesMax = 4_096;

/** A message of a websocket. Its outline gives operation and id before the message is parsed. */
export class WebSocketMessage {
  /** The name of the operation; '' without one. */
  readonly operation: string;
  readonly #bytes: Buffer;
  readonly #outline: JsonOutline;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#outline = envelopeOutline(bytes);
    const name = this.#value('a', operationNameBytesMax);
    this.operation = typeof name === 'string' ? name : '';
  }

  /**
   * Returns an object with the id, which the answer repeats; an empty object without an id. Throws
   * `too_large`.
   */
  echo(): { readonly id?: unknown } {
    const { start, end, depth } = this.#outline.members.get('id') ?? noMember;
    if (depth > jsonDepthMax || end - start > messageIdBytesMax) {
      const bounds = `${messageIdBytesMax} bytes and ${jsonDepthMax} levels`;
      throw new Failure('too_large', `The id of a message has at most ${bounds}.`, { field: 'id' });
    }
    const id = this.#value('id', messageIdBytesMax);
    return id === undefined ? {} : { id };
  }

  /**
   * Parses the message after checking that the caller may call the operation, and that the message
   * is neither too large nor nested too deeply. Throws `unauthenticated`, `forbidden`, `too_large`
   * or `invalid`.
   */
  parse({ find }: Pick<Execute, 'find'>, caller: Caller): Envelope {
    const operation = find(this.operation);
    if (operation !== undefined) authorise(operation, caller, { mayDraft: true });
    const bytesMax =
      operation === undefined ? readBodyBytesMax : operationBytesMax(operation, caller);
    if (this.#bytes.length > bytesMax) {
      throw new Failure(
        'too_large',
        `A message for this operation has at most ${bytesMax} bytes.`,
        {
          limit: 'content_size',
        },
      );
    }
    requireParsable(this.#outline, operation?.effect ?? 'reads');
    return envelopeFrom(parseJson(this.#bytes.toString()));
  }

  /** Returns the value of a member; undefined if it is absent, malformed or too long. */
  #value(name: string, bytesMax: number): unknown {
    const { start, end } = this.#outline.members.get(name) ?? noMember;
    if (end - start > bytesMax) return undefined;
    try {
      return parsed(this.#bytes.toString('utf8', start, end));
    } catch {
      return undefined;
    }
  }
}

const noMember: JsonMember = { start: 0, end: 0, depth: 0 };
