import type { JSONSchemaType } from 'ajv';
import type { Fields } from '../http/request.ts';
import type { FieldList, Reply } from '../http/reply.ts';
import type { FailureCode } from '../model/failure.ts';
import type { JsonObject } from '../model/json.ts';
import type { Caller, Scope } from '../model/key.ts';
import type { Visitor } from '../model/visitor.ts';
import type { RuleChange, Store } from '../store/store.ts';

/** Everything about a call besides its input fields. */
export interface Call {
  readonly caller: Caller;
  /** Idempotency key (docs/design/history.md#idempotency-and-concurrency). */
  readonly vk: string | undefined;
  /** Query kind (docs/design/operations.md#envelope). */
  readonly qk: string | undefined;
  /** The origin by which the caller reached the service, for URLs handed out. */
  readonly origin: string;
  /** Header fields of the HTTP request, or of the websocket's upgrade. */
  readonly fields: Fields;
  /** Who asks, as far as an answer may depend on it. */
  readonly visitor: Visitor;
  readonly transport: 'http' | 'websocket';
  /** Whether the input came as a query or a form, where all is text. */
  readonly isText?: boolean;
  /** Whether a write with a mistake in it is to be refused (RFC 7240 §4.4, handling=strict). */
  readonly isStrict?: boolean;
  /** Made when it is asked for: aborts when nobody waits for the answer any more. */
  readonly signal: () => AbortSignal;
}

/** What an operation goes on with after its answer: the changes behind a seq, as they come. */
export interface Stream {
  readonly after: number;
  /** Store.changesAfter: whoever sends the packets reads the log at the pace of its client. */
  readonly changesAfter: Store['changesAfter'];
  /** Whether a change makes a packet. */
  readonly matches: (change: RuleChange) => boolean;
}

/** One more envelope to a caller that has its answer already. */
export interface Packet {
  readonly r: string;
  readonly data: unknown;
}

/**
 * What an operation answers: data for the envelope, an HTTP answer of its own, or data that a
 * stream follows.
 */
export type OperationResult =
  | {
      readonly kind: 'data';
      readonly data: unknown;
      readonly vk?: string;
      /** True when the answer is that of an earlier request with the same vk. */
      readonly replayed?: boolean;
      /** Strong validator of the data (RFC 9110 §8.8.3), quotes included. */
      readonly etag?: string;
      /** What caches are told over HTTP, in place of what is usual. */
      readonly caching?: FieldList;
      /**
       * What chose the answer besides the input, where anybody who may ask at all is answered alike
       * until the log or the configuration changes; absent where the caller makes a difference.
       */
      readonly forAll?: { readonly variesByLanguage: boolean };
      /** A new identity for the websocket that the call came by. */
      readonly caller?: Caller;
    }
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'stream'; readonly data: unknown; readonly stream: Stream };

/** What the documents of the API say of an operation besides its input (OpenAPI, AsyncAPI). */
export interface Description {
  /** One sentence. */
  readonly summary: string;
  /** JSON Schema of `data`; of an operation with an HTTP answer of its own, over the websocket. */
  readonly output: JsonObject;
  /** JSON Schema of the valid fields of `v`, where `input` lets others pass. */
  readonly fields?: JsonObject;
  /** JSON Schemas of the members of the envelope that the operation looks at besides `v`. */
  readonly envelope?: {
    readonly vk?: JsonObject;
    readonly qk?: JsonObject;
    readonly prefer?: JsonObject;
  };
  /** Query parameters of a GET that are not input fields under `_v.`. */
  readonly query?: Readonly<Record<string, JsonObject>>;
  /** The input field that a body of NDJSON is; the others are then in the query. */
  readonly linesField?: string;
  /** Whether answers have a validator. */
  readonly etag?: true;
  /** Its refusals beside those that any operation knows. */
  readonly failures?: readonly FailureCode[];
  /** Its HTTP answers where they are no envelope: a sentence by status, or by `default`. */
  readonly replies?: Readonly<Record<string, string>>;
  /** Of an operation that streams: the `r` of its packets, and the JSON Schema of their `data`. */
  readonly packets?: { readonly r: string; readonly data: JsonObject };
}

/**
 * One definition of an operation serves HTTP, websocket and command line
 * (docs/design/operations.md#one-definition).
 */
export interface Operation extends Description {
  /** `svc1.<family>.<operation>`. */
  readonly name: string;
  /** What the caller needs; undefined for an operation that anyone may call. */
  readonly scope: Scope | undefined;
  readonly effect: Effect;
  /** JSON Schema of `v`. */
  readonly input: JsonObject;
  /** Rejects with a Failure; `v` has been validated against the input schema. */
  readonly run: (v: unknown, call: Call) => Promise<OperationResult> | OperationResult;
  /** Of an operation that streams: the packet of a change that its stream lets through. */
  readonly packet?: (change: RuleChange, call: Call) => Packet;
}

/**
 * Reading operations answer to GET and POST, writing ones to POST only, streaming ones over the
 * websocket only.
 */
export type Effect = 'reads' | 'writes' | 'streams';

/**
 * Who a change is said to be by (docs/design/history.md#the-change-log): the id of the caller's
 * key, or `anonymous`.
 */
export function authorOf({ caller }: Call): string {
  return caller.keyId ?? 'anonymous';
}

/** Defines an operation whose `run` gets its input typed as the schema describes it. */
export function operation<Input>(
  name: string,
  scope: Scope | undefined,
  effect: Effect,
  { run, packet, ...described }: Handler<Input>,
): Operation {
  return {
    name,
    scope,
    effect,
    ...described,
    run: (v, call) => run(v as Input, call),
    ...(packet !== undefined && { packet }),
  };
}

/** The input schema of an operation with the function that answers it. */
export interface Handler<Input> extends Description {
  readonly input: JSONSchemaType<Input>;
  readonly run: (v: Input, call: Call) => Promise<OperationResult> | OperationResult;
  readonly packet?: Operation['packet'];
}
