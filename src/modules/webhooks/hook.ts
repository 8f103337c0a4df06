import { purgedValue } from '../../core/log/former-headers.ts';
import type { Change } from '../../core/log/change.ts';
import { recordAfter } from '../../core/log/write/fold.ts';
import type { WaymarkEvent } from '../../core/log/events/event.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { matchesFilter } from './filter.ts';

/** The HTTP methods of deliveries (docs/design/webhooks.md#registration). */
export const hookMethods = ['POST', 'PUT', 'PATCH', 'GET', 'DELETE'] as const;

/** The HTTP method of a hook's deliveries. */
type HookMethod = (typeof hookMethods)[number];

/** The event type that matches all types. */
export const anyEvent = '*';

/** Whether a hook gets each event in a message of its own, or in batches. */
type HookFrequency = { readonly mode: 'each' } | HookBatch;

/** When a batch of events is sent, and its limits. */
export interface HookBatch {
  readonly mode: 'batch';
  /** The longest time that an event waits for its batch, such as `60s`; or instead … */
  readonly every?: string;
  /** … the times of the day, such as `02:00`, at which batches are sent. */
  readonly at?: readonly string[];
  /** The time zone of `at`. */
  readonly zone?: string;
  readonly max_events: number;
  /** The largest body of a batch, such as `1MiB`; a single larger event is a batch of its own. */
  readonly max_bytes: string;
}

/** A registered webhook (docs/design/webhooks.md#registration). */
export interface Hook {
  /** A UUIDv7 that the server assigns. */
  readonly id: string;
  readonly name?: string;
  /** Event types, or `*` alone. */
  readonly event: readonly string[];
  /** An absolute http(s) URL without credentials. */
  readonly url: string;
  readonly method: HookMethod;
  /** Header fields that are added to each request. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Where it is executed: `central`, `counters` or a node's name; by default, each event decides.
   */
  readonly where?: string;
  readonly frequency: HookFrequency;
  /** Members that the data of an event must have, with equal values or conditions on them. */
  readonly filter: JsonObject;
  /**
   * Selects events about records by their tables; absent for all tables. The hook also gets events
   * that are not about a table.
   */
  readonly table?: readonly string[];
  /** Whether a message waits until the previous one is delivered or given up. */
  readonly order: boolean;
  /** Attempts before a message is given up. */
  readonly retry_limit: number;
  /** The waits before the second attempt, the third …, such as `5s`; else of the ini file. */
  readonly retry?: readonly string[];
  /** Whether it is delivered; otherwise, its events wait. */
  readonly active: boolean;
  /** When its secret was last rotated, ISO 8601, UTC. */
  readonly rotated_at?: string;
  readonly _unknowns_?: JsonObject;
}

/** A hook with its place in the log. */
export interface StoredHook {
  readonly hook: Hook;
  /** Seq of the record's newest change: its version. */
  readonly seq: number;
  /** Seq of its insert: it gets the later events. */
  readonly insertedSeq: number;
}

/** The secret that signs a hook's deliveries. */
export interface HookSecret {
  /** `whsec_` and base64. */
  readonly secret: string;
  /** The previous secret, which also signs until `until`, ISO 8601, UTC. */
  readonly previous?: string;
  readonly until?: string;
}

/** Fields that decide which events a hook gets, and when. */
const decidingFields = ['active', 'where', 'frequency', 'filter', 'table'] as const;

/**
 * The fields with an invalid value among those that decide what a hook gets. A hook with such a
 * field is paused, because it could get more events than intended
 * (docs/design/webhooks.md#registration).
 */
export function waitingFields({ _unknowns_: unknowns = {} }: Hook): readonly string[] {
  return decidingFields.filter((name) => Object.hasOwn(unknowns, name));
}

/** Whether a hook is active and not paused. */
export function isDelivered(hook: Hook): boolean {
  return hook.active && waitingFields(hook).length === 0;
}

const secretPrefix = 'secret:';

/**
 * The id of the record with a hook's secret. It is a separate record, so that reverting changes of
 * the hook does not change the secret.
 */
export function secretRecordId(hookId: string): string {
  return secretPrefix + hookId;
}

/** The id of the hook for the id of such a record. */
export function hookOfSecret(recordId: string): string {
  return recordId.slice(secretPrefix.length);
}

/** The role and name of this node (docs/design/configuration.md#the-ini-file, `[node]`). */
export interface Node {
  readonly role: 'all' | 'central' | 'replica' | 'counter';
  readonly name: string;
}

/**
 * Whether a node delivers an event to a hook: by the event's type, its data, and the place of
 * execution (docs/design/webhooks.md#registration). Only the hook of a test gets its event.
 */
export function isDeliveredOn(hook: Hook, event: WaymarkEvent, node: Node): boolean {
  return hookMatches(hook, event) && isExecutedHere(hook, event, node);
}

/** Whether a hook gets an event on the node that executes it. */
export function hookMatches(hook: Hook, event: WaymarkEvent): boolean {
  if (event.hook !== undefined) return event.hook === hook.id;
  if (!hook.event.includes(event.type) && !hook.event.includes(anyEvent)) return false;
  // A failing hook gets no event about its own failure, because that would fail again.
  if (event.about === hook.id) return false;
  return isWanted(hook, event);
}

/**
 * Whether a node executes a hook for any event. Without `where`, each event decides, so it may be
 * any node.
 */
export function isExecutedOn({ where }: Hook, { role, name }: Node): boolean {
  if (role === 'all' || where === undefined || where === name) return true;
  return where === { central: 'central', counter: 'counters', replica: undefined }[role];
}

/** Where a hook is executed for an event: `central`, `counters`, or the name of a node. */
export function placeOf({ where }: Hook, { counter }: Pick<WaymarkEvent, 'counter'>): string {
  return where ?? counter ?? 'central';
}

function isExecutedHere(hook: Hook, event: WaymarkEvent, { role, name }: Node): boolean {
  if (role === 'all' || hook.where === name) return true;
  const place = placeOf(hook, event);
  if (role === 'central') return place === 'central';
  // A replica does not get the secrets of other hooks.
  if (role === 'replica') return false;
  return place === name || (place === 'counters' && (event.counter ?? name) === name);
}

function isWanted(
  { filter, where, table, _unknowns_: unknowns = {} }: Hook,
  event: WaymarkEvent,
): boolean {
  const hasNoFilter = Object.keys(filter).length === 0;
  // The intended filter, tables or place are not known while their values are invalid.
  if (hasNoFilter && Object.hasOwn(unknowns, 'filter')) return false;
  if (where === undefined && Object.hasOwn(unknowns, 'where')) return false;
  if (table === undefined && Object.hasOwn(unknowns, 'table')) return false;
  if (table !== undefined && event.table !== undefined && !table.includes(event.table)) {
    return false;
  }
  return matchesFilter(event.data, filter);
}

/** Fields that Waymark sets in every delivery, and fields of the message's framing (RFC 9112). */
const reserved: ReadonlySet<string> = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'webhook-id',
  'webhook-signature',
  'webhook-timestamp',
  'x-service-hmac',
]);

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const content = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;

/**
 * Whether a hook may add a header field to its deliveries (docs/design/webhooks.md#registration):
 * it must be valid (RFC 9110 §5.1, §5.5), and Waymark must not set it itself.
 */
export function isHookHeader(name: string, value: string): boolean {
  return hookHeaderMistake(name, value) === undefined;
}

/** Why a hook may not add a header field to its deliveries, a sentence; undefined if it may. */
export function hookHeaderMistake(name: string, value: string): string | undefined {
  if (!token.test(name)) return 'The name of a header field has 1 to 128 letters, digits, or -_.';
  if (reserved.has(name.toLowerCase())) return 'Waymark sets this header field itself.';
  if (!content.test(value)) return 'The value must be one line of visible ASCII.';
  return undefined;
}

/** Applies an insert or edit to a hook, as for a page rule. */
export function foldHook(before: StoredHook | undefined, change: Change): StoredHook {
  const hook = recordAfter(before?.hook, change, ['url', 'method']);
  const { seq } = change;
  return { hook: hook as unknown as Hook, seq, insertedSeq: before?.insertedSeq ?? seq };
}

/**
 * Applies a change of a hook's secret: the previous secret signs too until the given time, unless
 * it was purged. Undefined if this node did not get the secret (docs/design/nodes.md).
 */
export function foldSecret(
  before: HookSecret | undefined,
  { data }: Change,
): HookSecret | undefined {
  if (data.secret === undefined) return undefined;
  const { secret, until } = data as unknown as HookSecret;
  if (before === undefined || until === undefined || before.secret === purgedValue) {
    return { secret };
  }
  return { secret, previous: before.secret, until };
}
