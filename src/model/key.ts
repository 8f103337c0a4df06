import { keyNameCharactersMax } from './limits.ts';

/** What a key may do (docs/design/failures.md#keys); `admin` implies every other scope. */
export const scopes = ['render', 'read', 'design', 'webhook', 'event', 'verify', 'admin'] as const;

/** What the name of a key looks like: one line of text. */
export const keyNamePattern = `^[^\\u0000-\\u001f\\u007f-\\u009f]{1,${keyNameCharactersMax}}$`;

/** What every API key begins with: nobody takes it for a token of somebody else. */
export const keyPrefix = 'wmk_';

/** One thing that a key may do. */
export type Scope = (typeof scopes)[number];

/** An API key as it is kept: never the key itself, only its SHA-256. */
export interface ApiKey {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** SHA-256 of the whole key text, lower-case hex. */
  readonly hash: string;
  /** ISO 8601, UTC. */
  readonly created: string;
  /** Operations a second that it may call; without it, what the ini file says. */
  readonly rate?: number;
}

/** Whoever sent a request: what they may do, and the name under which their changes are logged. */
export interface Caller {
  readonly scopes: ReadonlySet<Scope>;
  /** The id of the caller's key, or undefined for a caller without a key. */
  readonly keyId: string | undefined;
  /** Operations a second that its key may call; undefined for any number. */
  readonly rate: number | undefined;
  /** The peer's address, for limits and the log. */
  readonly address: string;
}

/** Whether a text can be the name of a key: one line of at most 128 characters. */
export function isKeyName(text: string): boolean {
  return new RegExp(keyNamePattern, 'u').test(text);
}

/** Whether a text names a scope. */
export function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text);
}

/** Whether a caller has a scope, directly or by `admin`; one who inserts events may read them. */
export function hasScope(caller: Caller, scope: Scope): boolean {
  const isImplied = scope === 'verify' && caller.scopes.has('event');
  return isImplied || caller.scopes.has(scope) || caller.scopes.has('admin');
}

/** The scopes whose operations only read. */
const readingScopes: readonly Scope[] = ['render', 'read', 'verify'];

/** Whether a caller may call any operation that writes. */
export function canWrite({ scopes: held }: Pick<Caller, 'scopes'>): boolean {
  return scopes.some((scope) => held.has(scope) && !readingScopes.includes(scope));
}
