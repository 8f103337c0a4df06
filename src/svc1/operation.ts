import type { JSONSchemaType } from 'ajv';
import type { Fields } from '../http/request.ts';
import type { Reply } from '../http/reply.ts';
import type { JsonObject } from '../model/json.ts';
import type { Caller, Scope } from '../model/key.ts';

/** Everything about a call besides its input fields. */
export interface Call {
  readonly caller: Caller;
  /** Idempotency key (contract §4.4). */
  readonly vk: string | undefined;
  /** Query kind (seed 4.1). */
  readonly qk: string | undefined;
  /** The origin by which the caller reached the service, for URLs handed out. */
  readonly origin: string;
  /** Header fields of the HTTP request, or of the websocket's upgrade. */
  readonly fields: Fields;
  readonly signal: AbortSignal;
}

/** What an operation answers: data for the envelope, or an HTTP answer of its own. */
export type Outcome =
  | {
      readonly kind: 'data';
      readonly data: unknown;
      readonly vk?: string;
      /** True when the answer is that of an earlier request with the same vk. */
      readonly replayed?: boolean;
      /** Strong validator of the data (RFC 9110 §8.8.3), quotes included. */
      readonly etag?: string;
      /** A new identity for the websocket that the call came by. */
      readonly caller?: Caller;
    }
  | { readonly kind: 'reply'; readonly reply: Reply };

/** One definition of an operation serves HTTP, websocket and command line (contract §5). */
export interface Operation {
  /** `svc1.<family>.<operation>`. */
  readonly name: string;
  /** What the caller needs; undefined for an operation that anyone may call. */
  readonly scope: Scope | undefined;
  /** Reading operations answer to GET, writing ones to POST only. */
  readonly effect: 'reads' | 'writes';
  /** JSON Schema of `v`. */
  readonly input: JsonObject;
  /** Rejects with a Failure; `v` has been validated against the input schema. */
  readonly run: (v: unknown, call: Call) => Promise<Outcome> | Outcome;
}

/** Who a change is said to be by (contract §4.3): the id of the caller's key, or `anonymous`. */
export function authorOf({ caller }: Call): string {
  return caller.keyId ?? 'anonymous';
}

/** Defines an operation whose `run` gets its input typed as the schema describes it. */
export function operation<Input>(
  name: string,
  scope: Scope | undefined,
  effect: 'reads' | 'writes',
  { input, run }: Handler<Input>,
): Operation {
  return {
    name,
    scope,
    effect,
    input: input,
    run: (v, call) => run(v as Input, call),
  };
}

/** The input schema of an operation with the function that answers it. */
export interface Handler<Input> {
  readonly input: JSONSchemaType<Input>;
  readonly run: (v: Input, call: Call) => Promise<Outcome> | Outcome;
}
