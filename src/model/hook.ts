import type { WaymarkEvent } from './event.ts';
import { sameJson, type Json, type JsonObject } from './json.ts';

/** The methods by which a hook can be delivered (docs/design/webhooks.md#registration). */
export const hookMethods = ['POST', 'PUT', 'PATCH', 'GET', 'DELETE'] as const;

/** How a hook is delivered. */
type HookMethod = (typeof hookMethods)[number];

/** The event type that stands for all of them. */
export const anyEvent = '*';

/** When a hook is delivered: each event by itself, or many of them together. */
type HookFrequency = { readonly mode: 'each' } | HookBatch;

/** How the events of a hook are put together. */
export interface HookBatch {
  readonly mode: 'batch';
  /** A time such as `60s`: the oldest event of a batch waits no longer. In place of it … */
  readonly every?: string;
  /** … times of the day such as `02:00`: batches are sent then, and at no other time. */
  readonly at?: readonly string[];
  /** The time zone of `at`. */
  readonly zone?: string;
  readonly max_events: number;
  /** A size such as `1MiB`: no batch's body is larger, unless one event is. */
  readonly max_bytes: string;
}

/**
 * A webhook as it is registered (docs/design/webhooks.md#registration,
 * docs/design/webhooks.md#registration).
 */
export interface Hook {
  /** UUIDv7, given by the server. */
  readonly id: string;
  readonly name?: string;
  /** Event types, or `*` alone. */
  readonly event: readonly string[];
  /** Absolute http(s) URL without a user. */
  readonly url: string;
  readonly method: HookMethod;
  /** Fields added to each request, by their names as they were written. */
  readonly headers: Readonly<Record<string, string>>;
  /** Where it is executed: `central`, `counters` or a node's name; if absent, where events say. */
  readonly where?: string;
  readonly frequency: HookFrequency;
  /** Members that the data of an event must have, each equal. */
  readonly filter: JsonObject;
  /** Whether a delivery waits until the one before it has come to its end. */
  readonly order: boolean;
  /** Attempts before a delivery is given up. */
  readonly retry_limit: number;
  /** Whether it is delivered; while it is not, its events are kept. */
  readonly active: boolean;
  /** When its secret was changed last, ISO 8601, UTC. */
  readonly rotated_at?: string;
  readonly _unknowns_?: JsonObject;
}

/** A hook with its place in the log. */
export interface StoredHook {
  readonly hook: Hook;
  /** Seq of the record's newest change: its version. */
  readonly seq: number;
  /** Seq of its insert: it gets the events behind it. */
  readonly insertedSeq: number;
}

/** The secret that a hook's deliveries are signed with. */
export interface HookSecret {
  /** `whsec_` and base64. */
  readonly secret: string;
  /** The one before it, which signs too until `until`, ISO 8601, UTC. */
  readonly previous?: string;
  readonly until?: string;
}

/** The fields that decide which events a hook gets, and when. */
const decidingFields = ['active', 'where', 'frequency', 'filter'] as const;

/**
 * The fields of a hook for which a value waits that is not valid, of those that decide what it
 * gets: it is paused as long as there are any, for it would be told more than was meant
 * (docs/design/webhooks.md#registration).
 */
export function waitingFields({ _unknowns_: unknowns = {} }: Hook): readonly string[] {
  return decidingFields.filter((name) => Object.hasOwn(unknowns, name));
}

/** Whether a hook is delivered, and not paused. */
export function isDelivered(hook: Hook): boolean {
  return hook.active && waitingFields(hook).length === 0;
}

const secretPrefix = 'secret:';

/**
 * The id of the record that holds a hook's secret: a record of its own, which stays as it is when
 * changes of the hook are taken back.
 */
export function secretRecordId(hookId: string): string {
  return secretPrefix + hookId;
}

/** The hook whose secret a record holds. */
export function hookOfSecret(recordId: string): string {
  return recordId.slice(secretPrefix.length);
}

/** Which node of the service this is (docs/design/configuration.md#the-ini-file, `[node]`). */
export interface Node {
  readonly role: 'all' | 'central' | 'counter';
  readonly name: string;
}

/**
 * Whether a hook gets an event on this node: its type, its data, and the place where it is executed
 * (docs/design/webhooks.md#registration). A test is for the hook that it names alone.
 */
export function hookTakes(hook: Hook, event: WaymarkEvent, node: Node): boolean {
  return hookWants(hook, event) && isExecutedHere(hook, event, node);
}

/** Whether a hook gets an event on the node where it is executed. */
export function hookWants(hook: Hook, event: WaymarkEvent): boolean {
  if (event.hook !== undefined) return event.hook === hook.id;
  if (!hook.event.includes(event.type) && !hook.event.includes(anyEvent)) return false;
  // A hook that fails is not told of that: it would fail again.
  if (event.about === hook.id) return false;
  return isWanted(hook, event);
}

/**
 * Whether a hook is executed on this node for any event at all: one without `where` is where its
 * events say.
 */
export function isExecutedOn({ where }: Hook, { role, name }: Node): boolean {
  if (role === 'all' || where === undefined || where === name) return true;
  return where === (role === 'central' ? 'central' : 'counters');
}

/** Where a hook is executed for an event: `central`, `counters`, or the name of a node. */
export function placeOf({ where }: Hook, { counter }: Pick<WaymarkEvent, 'counter'>): string {
  return where ?? counter ?? 'central';
}

function isExecutedHere(hook: Hook, event: WaymarkEvent, { role, name }: Node): boolean {
  if (role === 'all' || event.hook !== undefined) return true;
  const place = placeOf(hook, event);
  if (role === 'central') return place === 'central' || hook.where === name;
  return place === name || (place === 'counters' && (event.counter ?? name) === name);
}

function isWanted(
  { filter, where, _unknowns_: unknowns = {} }: Hook,
  event: WaymarkEvent,
): boolean {
  const hasNoFilter = Object.keys(filter).length === 0;
  // What is to narrow it down is not known yet.
  if (hasNoFilter && Object.hasOwn(unknowns, 'filter')) return false;
  if (where === undefined && Object.hasOwn(unknowns, 'where')) return false;
  return hasAll(event.data, filter);
}

function hasAll(data: JsonObject, filter: JsonObject): boolean {
  return Object.entries(filter).every(([name, value]) => sameJson(value, member(data, name)));
}

function member(data: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(data, name) ? data[name] : undefined;
}

/** What every delivery says itself, and what belongs to the framing of a message (RFC 9112). */
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
 * Whether a hook may add a field to its deliveries (docs/design/webhooks.md#registration): one that
 * HTTP carries unchanged (RFC 9110 §5.1, §5.5) and that Waymark does not say itself.
 */
export function isHookHeader(name: string, value: string): boolean {
  return hookHeaderMistake(name, value) === undefined;
}

/** Why a hook may not add a field to its deliveries, as a sentence; undefined where it may. */
export function hookHeaderMistake(name: string, value: string): string | undefined {
  if (!token.test(name)) return 'The name of a header field has 1 to 128 letters, digits, or -_.';
  if (reserved.has(name.toLowerCase())) return 'Waymark sets this header field itself.';
  if (!content.test(value)) return 'The value has to be visible ASCII, in one line.';
  return undefined;
}
