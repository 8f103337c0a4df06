import type { Fields } from '../http/request.ts';
import type { FieldList, Reply } from '../http/reply.ts';
import type { FailureCode } from '../values/failure.ts';
import type { JsonObject } from '../values/json/json.ts';
import type { Caller, Scope } from '../values/key.ts';
import type { StaticInput, StaticOutput } from '../values/json/static.ts';
import type { Visitor } from '../http/visitor.ts';
import {
  authorVia,
  type ChangeAuthor,
  type RevertibleFamily,
  type ToolUse,
} from '../log/change.ts';
import type { FeedSlice, RecordChange } from '../log/store.ts';

/** A call of an operation, without its input fields. */
export interface Call {
  readonly caller: Caller;
  /** Idempotency key (docs/design/history.md#idempotency-and-concurrency). */
  readonly vk: string | undefined;
  /** Query kind (docs/design/operations.md#envelope). */
  readonly qk: string | undefined;
  /** The name or id of the draft that it reads or changes; by default, the live state. */
  readonly draft?: string | undefined;
  /** The id of the draft that the caller's browser previews. */
  readonly preview?: string | undefined;
  /** The origin by which the caller reached the service, for URLs in answers. */
  readonly origin: string;
  /** Header fields of the HTTP request, or of the websocket's upgrade. */
  readonly fields: Fields;
  /** The properties of the caller that an answer may depend on. */
  readonly visitor: Visitor;
  readonly transport: 'http' | 'websocket';
  /** The method of the HTTP request; undefined over the websocket. */
  readonly method?: string | undefined;
  /** Whether the input is a query or a form, in which every value is a text. */
  readonly isText?: boolean;
  /** Whether the server refuses a write with a mistake in it (RFC 7240 §4.4, handling=strict). */
  readonly isStrict?: boolean;
  /**
   * Counts a page that the call asks for among several, as if a call of its own did; undefined for
   * a call of the server itself. Rejects with `rate_limited`.
   */
  readonly countPage?: CountPage;
  /** The tool through which the caller makes the call; undefined for a call without one. */
  readonly via?: ToolUse | undefined;
  /** Creates a signal that aborts when no client waits for the answer any more. */
  readonly signal: () => AbortSignal;
}

/** Counts a page, by its origin and its path as an input names it. */
export type CountPage = (page: { readonly origin: string; readonly path: string }) => Promise<void>;

/** The changes after a seq that an operation sends after its answer, as they are committed. */
export interface ChangeStream {
  readonly after: number;
  /** Store.changesAfter: the sender of the packets reads the log at the pace of its client. */
  readonly changesAfter: (
    families: readonly RevertibleFamily[],
    seq: number,
    signal: AbortSignal,
  ) => Promise<FeedSlice>;
  /** The family of its changes. */
  readonly family: RevertibleFamily;
  /** Whether a packet is sent for a change of its family. */
  readonly matches: (change: RecordChange) => boolean;
  /** Packets for what happens without a change, such as the time at which a page rule begins. */
  readonly others?: Feed;
}

/** An envelope that follows the answer. */
export interface Packet {
  readonly r: string;
  readonly data: unknown;
}

/** The answer of an operation: data, an HTTP reply of its own, or data that packets follow. */
export type OperationResult<Data = unknown> =
  | {
      readonly kind: 'data';
      readonly data: Data;
      readonly vk?: string;
      /** True if this is the answer to an earlier request with the same vk. */
      readonly replayed?: boolean;
      /** Strong validator of the data (RFC 9110 §8.8.3), with its quotes. */
      readonly etag?: string;
      /** Fields for caches in the HTTP response, instead of the usual ones. */
      readonly caching?: FieldList;
      /** Further fields of the HTTP response. */
      readonly fields?: FieldList;
      /**
       * Set if all callers with this input get the same answer until the log or the configuration
       * changes.
       */
      readonly forAll?: { readonly variesByLanguage: boolean };
      /** The new identity of the websocket that the call came over. */
      readonly caller?: Caller;
      /** The id of the requests whose subscriptions the websocket ends. */
      readonly unsubscribed?: unknown;
    }
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'stream'; readonly data: Data; readonly stream: ChangeStream | Feed };

/**
 * The packets that an operation sends after its answer, until the signal aborts. The sender takes
 * the next one when the client has taken the one before.
 */
export type Feed = (signal: AbortSignal) => AsyncIterable<Packet>;

/** Runs an operation; `v` is valid for the input schema. Rejects or throws a Failure. */
type Run<Input, Data = unknown> = (
  v: Input,
  call: Call,
) => Promise<OperationResult<Data>> | OperationResult<Data>;

/** Makes the packet of a change that the stream of an operation matches. */
type MakePacket = (change: RecordChange, call: Call) => Packet;

/**
 * Reading operations answer to GET and POST, writing ones to POST only, streaming ones over the
 * websocket only, unless they have `ndjson`.
 */
export type Effect = 'reads' | 'writes' | 'streams';

/** The description of an operation, for HTTP, websocket, command line, OpenAPI and AsyncAPI. */
export interface OperationDescription {
  /** `svc1.<family>.<operation>`. */
  readonly name: string;
  /** The scope that a caller needs; undefined if everyone may call it. */
  readonly scope: Scope | undefined;
  /**
   * Whether the access settings of the table in the input decide about the call; `scope` is its
   * default.
   */
  readonly tableDecides?: true;
  /** Whether a key of the scope `verify:<hook>` may call it for that hook, its input field `id`. */
  readonly forHookKeys?: true;
  /** Whether running pages call it, also those of other origins: see service.ts. */
  readonly forPages?: true;
  readonly effect: Effect;
  /** One sentence. */
  readonly summary: string;
  /** JSON Schema of `v`. */
  readonly input: JsonObject;
  /** JSON Schema of the valid fields of `v`, if `input` accepts others, too. */
  readonly fields?: JsonObject;
  /** JSON Schema of `data`; of an operation with an HTTP reply of its own, over the websocket. */
  readonly output: JsonObject;
  /** JSON Schemas of the members of the envelope that the operation reads besides `v`. */
  readonly envelope?: {
    readonly vk?: JsonObject;
    readonly qk?: JsonObject;
    readonly prefer?: JsonObject;
  };
  /** Query parameters of a GET that are not input fields under `_v.`. */
  readonly query?: Readonly<Record<string, JsonObject>>;
  /** The input field that a body of NDJSON is; the query then has the other fields. */
  readonly linesField?: string;
  /** Whether it can read or change a draft instead of the live state. */
  readonly inDrafts?: true;
  /** An input field that may be left out, and is an argument of the command all the same. */
  readonly optionalArgument?: string;
  /** Whether answers have a validator. */
  readonly etag?: true;
  /** Its failures besides those of every operation. */
  readonly failures?: readonly FailureCode[];
  /** Its HTTP replies if they are no envelope: a sentence by status, or by `default`. */
  readonly replies?: Readonly<Record<string, string>>;
  /** The `r` of the packets of an operation that streams, and the JSON Schema of their `data`. */
  readonly packets?: { readonly r: string; readonly data: JsonObject };
  /**
   * Set if an operation that streams answers over HTTP, too, without an end: as NDJSON, with these
   * lines for each packet.
   */
  readonly ndjson?: (packet: Packet) => readonly unknown[];
}

/** An operation that can be called. */
export interface Operation extends OperationDescription {
  readonly run: Run<unknown>;
  readonly packet?: MakePacket;
}

/**
 * The definition of an operation (docs/design/operations.md#one-definition). `Parts` are its
 * dependencies, such as the store.
 */
export interface OperationDefinition<Parts> extends OperationDescription {
  readonly run: (parts: Parts) => Run<unknown>;
  /** Only for an operation that streams. */
  readonly packet?: (parts: Parts) => MakePacket;
}

/**
 * Defines an operation. Its schemas are the types of what `run` gets and of the data that it
 * answers; where a schema is made at run time, that is JsonObject.
 */
export function defineOperation<
  Parts,
  const Input extends JsonObject,
  const Output extends JsonObject,
>(
  definition: Omit<OperationDefinition<Parts>, 'input' | 'output' | 'run'> & {
    readonly input: Input;
    readonly output: Output;
    readonly run: (parts: Parts) => Run<StaticInput<Input>, StaticOutput<Output>>;
  },
): OperationDefinition<Parts> {
  return definition as OperationDefinition<Parts>;
}

/** Gives operations the parts that they need to run. */
export function bindOperations<Parts>(
  definitions: readonly OperationDefinition<Parts>[],
  parts: Parts,
): readonly Operation[] {
  return definitions.map(({ run, packet, ...description }) => ({
    ...description,
    run: run(parts),
    ...(packet !== undefined && { packet: packet(parts) }),
  }));
}

/** The author of a change (docs/design/history.md#the-change-log): a key's id, or `anonymous`. */
export function authorOf({ caller }: Call): string {
  return caller.keyId ?? 'anonymous';
}

/** The author of a change as the log gets it: that of authorOf, with the tool of the call. */
export function changeAuthorOf(call: Call): ChangeAuthor {
  return authorVia(authorOf(call), call.via);
}
