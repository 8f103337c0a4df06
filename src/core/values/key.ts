import type { Bounds } from './bounds.ts';
import { keyNameCharactersMax } from './limits.ts';
import type { ClientAddress } from './network/peer.ts';

/** The scopes of keys (docs/design/failures.md#keys); `admin` includes all others. */
export const scopes = [
  'render',
  'read',
  'design',
  'draft',
  'publish',
  'webhook',
  'event',
  'verify',
  'record.read',
  'record.write',
  'follow',
  'admin',
] as const;

/** `record.read` or `record.write` for one table: `record.read:products`. */
type TableScope = `record.${'read' | 'write'}:${string}`;

/** `verify` for one webhook, by its id: its deliveries, and nothing else. */
type HookScope = `verify:${string}`;

/** The pattern of a HookScope. */
export const hookScopePattern = '^verify:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$';

/** The pattern of a TableScope. */
export const tableScopePattern = '^record\\.(?:read|write):[a-z][a-z0-9_-]{0,62}$';

/** The pattern for the name of a key: one line of text. */
export const keyNamePattern = `^[^\\u0000-\\u001f\\u007f-\\u009f]{1,${keyNameCharactersMax}}$`;

/** The prefix of every API key, which distinguishes it from tokens of other services. */
export const keyPrefix = 'wmk_';

/** The prefix of the token of every session (docs/design/console.md#sessions). */
export const sessionPrefix = 'wms_';

/** The prefix of every token of a breadcrumb, which is a parameter of link.htm and no API key. */
export const breadcrumbTokenPrefix = 'wmb_';

/**
 * Whether the value of `apikey` or Authorization has a key, session or token of this server, at its
 * beginning, behind a scheme or behind a comma. Others are for the application behind a rule.
 */
export function hasOwnKey(value: string): boolean {
  return ownKey.test(value);
}

const ownPrefixes = [keyPrefix, sessionPrefix, breadcrumbTokenPrefix].join('|');
const ownKey = new RegExp(`(?:^|[\\s,])(?:${ownPrefixes})`);

/** A permission of a key. */
export type Scope = (typeof scopes)[number] | TableScope | HookScope;

/** An API key as it is stored: with its SHA-256 instead of its text. */
export interface ApiKey extends Bounds {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** SHA-256 of the whole key text, lower-case hex. */
  readonly hash: string;
  /** ISO 8601, UTC. */
  readonly created: string;
  /** The most operations a second; by default, the ini file decides. */
  readonly rate?: number;
  /** The node that may use the key for the scope `follow`; every such key has one. */
  readonly node?: string;
  /** When the key ends: ISO 8601, UTC; by default, it never does. */
  readonly until?: string;
  /**
   * Only for a session, which is stored as a key of its own: the id of the key that it was made
   * with, its end (ISO 8601, UTC), and at a node with a centre the encrypted text of that key.
   */
  readonly session?: {
    readonly key: string;
    readonly expires: string;
    readonly sealed?: string;
    /** The id of the session of `[login]` with which it ends. */
    readonly login?: string;
  };
  /**
   * Only for the key of a person who signs in by `[login]`: the hash by which the person is found.
   * Nobody knows its text.
   */
  readonly login?: string;
  /**
   * Only for a token, which is stored as a key of its own and is none: the breadcrumb that it
   * resolves, and the person for whom it does (docs/design/rendering.md#tokens). Its bounds are
   * those of the key that has made it.
   */
  readonly breadcrumb?: TokenSubject;
  /** Only for a token: when it was revoked. ISO 8601, UTC. */
  readonly revoked?: string;
}

/** A breadcrumb by its key and the visited origin, and the person whom a token stands for. */
export interface TokenSubject {
  readonly k: string;
  readonly origin: string;
  readonly user: string;
  readonly roles?: readonly string[];
}

/** Whether a stored key is one that callers send: sessions and tokens are stored as keys, too. */
export function isApiKey({ session, breadcrumb }: Pick<ApiKey, 'session' | 'breadcrumb'>): boolean {
  return session === undefined && breadcrumb === undefined;
}

/** The sender of a request: its scopes, and the key by which the log records its changes. */
export interface Caller {
  readonly scopes: ReadonlySet<Scope>;
  /** The id of the caller's key, or undefined for a caller without a key. */
  readonly keyId: string | undefined;
  /** The most operations a second for its key; undefined for no limit. */
  readonly rate: number | undefined;
  /** The part of the site to which its key is bound; undefined for all of it. */
  readonly bounds?: Bounds;
  /** The address of the client, for limits and the log. */
  readonly address: ClientAddress;
  /** The id of its session; undefined for a caller that sends its key. */
  readonly sessionId?: string;
  /**
   * The text of its key, to pass a write on to the centre (docs/design/nodes.md); the token of a
   * session that the centre has made.
   */
  readonly apikey?: string;
}

/**
 * When a key ends, in milliseconds since 1970; Infinity for one that does not. Nobody can use a key
 * whose end cannot be read.
 */
export function keyEndMs({ until }: Pick<ApiKey, 'until'>): number {
  if (until === undefined) return Infinity;
  const endMs = Date.parse(until);
  return Number.isNaN(endMs) ? -Infinity : endMs;
}

/** Whether a text can be the name of a key: one line of at most 128 characters. */
export function isKeyName(text: string): boolean {
  return new RegExp(keyNamePattern, 'u').test(text);
}

/** Whether a text is the name of a scope. */
export function isScope(text: string): text is Scope {
  return (
    (scopes as readonly string[]).includes(text) || tableScope.test(text) || hookScope.test(text)
  );
}

const [tableScope, hookScope] = [new RegExp(tableScopePattern), new RegExp(hookScopePattern)];

/**
 * Whether a caller has a scope, directly or by another: `admin` includes all, `design` includes
 * `draft` and `publish`, `event` includes `verify`, `verify` includes `record.read`, and
 * `record.read` that of each table.
 */
export function hasScope({ scopes: held }: Pick<Caller, 'scopes'>, scope: Scope): boolean {
  if (held.has(scope) || held.has('admin')) return true;
  if (scope === 'draft' || scope === 'publish') return held.has('design');
  if (scope === 'verify') return held.has('event');
  if (scope.startsWith('record.read')) return held.has('record.read') || held.has('verify');
  return scope.startsWith('record.write:') && held.has('record.write');
}

/** Whether a caller may read the deliveries of some webhook, named by a HookScope. */
export function hasHookScope({ scopes: held }: Pick<Caller, 'scopes'>): boolean {
  return [...held].some((scope) => scope.startsWith('verify:'));
}

/**
 * The scopes that a bound key can have (docs/design/failures.md#bound-keys): what the others allow
 * belongs to no place of the site.
 */
export const boundScopes: readonly Scope[] = ['render', 'read', 'design', 'draft', 'publish'];

/** The part of the site to which a key is bound; undefined for all of it. */
export function boundsOf({ origins, paths }: Bounds): Bounds | undefined {
  if (origins === undefined && paths === undefined) return undefined;
  return { ...(origins && { origins }), ...(paths && { paths }) };
}

/** The scopes whose operations only read. */
const readingScopes: readonly Scope[] = ['render', 'read', 'verify', 'record.read'];

/** Whether a caller may call any operation that writes. */
export function canWrite({ scopes: held }: Pick<Caller, 'scopes'>): boolean {
  return [...held].some(
    (scope) =>
      !readingScopes.includes(scope) &&
      !scope.startsWith('record.read:') &&
      !scope.startsWith('verify:'),
  );
}
