import { authorise, type Execute } from '../../api/execute.ts';
import { Failure } from '../../model/failure.ts';
import type { JsonMember, JsonOutline } from '../../model/json-outline.ts';
import type { Caller } from '../../model/key.ts';
import { readBodyBytesMax } from '../../api/limits.ts';
import { jsonDepthMax } from '../../model/limits.ts';
import {
  envelopeFrom,
  envelopeOutline,
  parseJson,
  requireParsable,
  type Envelope,
} from '../envelope.ts';
import { messageIdBytesMax, operationNameBytesMax } from '../limits.ts';
import { operationBytesMax } from '../operations.ts';

/** A message of a websocket, with what can be known of it before it is parsed. */
export class WebSocketMessage {
  /** The operation that it names; '' where it names none. */
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
   * The id, which the answer repeats, as the only member of an object that is empty where there is
   * none. Throws `too_large`.
   */
  echo(): { readonly id?: unknown } {
    const { start, end, depth } = this.#outline.members.get('id') ?? noMember;
    if (depth > jsonDepthMax || end - start > messageIdBytesMax) {
      const bounds = `${messageIdBytesMax} bytes and ${jsonDepthMax} levels`;
      throw new Failure('too_large', `The id of a message may have ${bounds}.`, { field: 'id' });
    }
    const id = this.#value('id', messageIdBytesMax);
    return id === undefined ? {} : { id };
  }

  /**
   * Parses the message, once it is known that the caller may call the operation, and that the
   * message is neither too large nor nests too deeply. Throws `unauthenticated`, `forbidden`,
   * `too_large` or `invalid`.
   */
  parse({ find }: Pick<Execute, 'find'>, caller: Caller): Envelope {
    const operation = find(this.operation);
    if (operation !== undefined) authorise(operation, caller);
    const bytesMax = operation === undefined ? readBodyBytesMax : operationBytesMax(operation);
    if (this.#bytes.length > bytesMax) {
      throw new Failure('too_large', `A message for this operation may have ${bytesMax} bytes.`, {
        limit: 'content_size',
      });
    }
    requireParsable(this.#outline, operation?.effect ?? 'reads');
    return envelopeFrom(parseJson(this.#bytes.toString()));
  }

  /** The value of a member; undefined where there is none, or none that is JSON of that length. */
  #value(name: string, bytesMax: number): unknown {
    const { start, end } = this.#outline.members.get(name) ?? noMember;
    if (end - start > bytesMax) return undefined;
    try {
      return JSON.parse(this.#bytes.toString('utf8', start, end)) as unknown;
    } catch {
      return undefined;
    }
  }
}

const noMember: JsonMember = { start: 0, end: 0, depth: 0 };
