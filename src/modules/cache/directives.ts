import { parseDictionary } from 'structured-headers';
import { type FieldList, fieldLines } from '../../core/http/reply.ts';
import type { Fields } from '../../core/http/request.ts';
import { splitList, tokenSource, unquote } from '../../core/http/syntax.ts';
import { createLruCache } from '../../core/values/lru-cache.ts';

/** Parsed Cache-Control fields in memory, and the longest field that is remembered. */
const directivesKnownMax = 256;
const directivesKnownCharactersMax = 256;

/**
 * Cache directives (RFC 9111 §5.2) by lower-case name. The value is the argument without quotes,
 * `true` without an argument, or undefined for an invalid argument.
 */
export type Directives = ReadonlyMap<string, string | true | undefined>;

const directive = new RegExp(
  `^(${tokenSource})(?:=(${tokenSource}|"(?:[^"\\\\]|\\\\.)*")|([ \\t]*=.*|[ \\t].*))?$`,
  's',
);

/** Longer times count as this one (RFC 9111 §1.2.2). */
const longestSeconds = 2 ** 31;

const none: Directives = new Map();

/**
 * Parses a Cache-Control field (RFC 9111 §5.2). The first of repeated directives counts (§4.2.1);
 * invalid elements are ignored.
 */
export function parseDirectives(field: string | undefined): Directives {
  if (field === undefined) return none;
  if (field.length > directivesKnownCharactersMax) return readDirectives(field);
  let directives = known.get(field);
  if (directives === undefined) {
    directives = readDirectives(field);
    known.set(field, directives);
  }
  return directives;
}

/** Sources and browsers send the same few values. */
const known = createLruCache<Directives>(directivesKnownMax);

function readDirectives(field: string): Directives {
  const directives = new Map<string, string | true | undefined>();
  // An unterminated quoted-string must not hide the directives before it.
  for (const element of splitList(field, ',') ?? field.split(',').map((one) => one.trim())) {
    const parts = directive.exec(element);
    const name = parts?.[1]?.toLowerCase();
    if (parts === null || name === undefined || directives.has(name)) continue;
    const [, , argument, unreadable] = parts;
    const bare = unreadable === undefined ? true : undefined;
    directives.set(name, argument === undefined ? bare : unquote(argument));
  }
  return directives;
}

/**
 * A directive's argument in seconds (RFC 9111 §1.2.2): undefined if the directive is absent, 0 if
 * its argument is invalid, so that the response is stale (§4.2.1).
 */
export function secondsOf(directives: Directives, name: string): number | undefined {
  if (!directives.has(name)) return undefined;
  const argument = directives.get(name);
  if (typeof argument !== 'string' || !/^\d+$/.test(argument)) return 0;
  return Math.min(Number(argument), longestSeconds);
}

/**
 * The lower-case names of the fields that a `no-cache` or `private` restricts (RFC 9111 §5.2.2.4,
 * §5.2.2.7). `all` if it restricts the whole response: it names no field, or an invalid one.
 */
export function fieldsOf(
  directives: Directives,
  name: 'no-cache' | 'private',
): readonly string[] | 'all' {
  if (!directives.has(name)) return [];
  const argument = directives.get(name);
  if (typeof argument !== 'string') return 'all';
  const names = argument.split(',').map((one) => one.trim().toLowerCase());
  const named = names.filter((one) => one !== '');
  return named.length > 0 && named.every((one) => fieldName.test(one)) ? named : 'all';
}

const fieldName = new RegExp(`^${tokenSource}$`);

/** The targeted fields of this cache, in order of precedence (RFC 9213 §2.2). */
const targets = ['cdn-cache-control'] as const;

/** The directives that apply to this cache. */
interface GoverningDirectives {
  readonly directives: Directives;
  /** Whether they are from a targeted field, which overrides Cache-Control and Expires. */
  readonly isTargeted: boolean;
}

/**
 * The directives of a response for a shared cache: those of the first targeted field that is valid
 * and not empty (RFC 9213 §2.2), else those of Cache-Control.
 */
export function governingDirectives(fields: FieldList): GoverningDirectives {
  for (const target of targets) {
    const lines = fieldLines(fields, target);
    const directives = lines.length === 0 ? undefined : parseTargeted(lines.join(', '));
    if (directives !== undefined && directives.size > 0) return { directives, isTargeted: true };
  }
  const lines = fieldLines(fields, 'cache-control');
  const directives = parseDirectives(lines.length === 0 ? undefined : lines.join(', '));
  return { directives, isTargeted: false };
}

/**
 * Parses a targeted field as a Dictionary of Structured Fields (RFC 9213 §2.1): undefined if it is
 * not one. An argument of the wrong type counts as invalid.
 */
function parseTargeted(field: string): Directives | undefined {
  const directives = new Map<string, string | true | undefined>();
  try {
    for (const [name, [value]] of parseDictionary(field)) {
      // `?0` means that the directive is absent.
      if (value !== false) directives.set(name, argumentOf(name, value));
    }
  } catch {
    return undefined;
  }
  return directives;
}

function argumentOf(name: string, value: unknown): string | true | undefined {
  if (value === true) return true;
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : undefined;
  return typeof value === 'string' && (name === 'no-cache' || name === 'private')
    ? value
    : undefined;
}

/** The cache directives of a request (RFC 9111 §5.2.1); times in milliseconds. */
export interface RequestDirectives {
  /** The response must not be stored, and stored responses must not be used. */
  readonly noStore: boolean;
  /** Stored responses must be validated first. */
  readonly noCache: boolean;
  readonly onlyIfCached: boolean;
  /** The client accepts no response that is older. */
  readonly maxAgeMs: number;
  /** The client wants a response that stays fresh at least this long. */
  readonly minFreshMs: number;
  /** The client accepts a response that is stale by up to this much. */
  readonly maxStaleMs: number;
  /** The client accepts a stale response in place of an error (RFC 5861 §4). */
  readonly staleIfErrorMs: number;
}

const noDirectives: RequestDirectives = {
  noStore: false,
  noCache: false,
  onlyIfCached: false,
  maxAgeMs: Infinity,
  minFreshMs: 0,
  maxStaleMs: 0,
  staleIfErrorMs: 0,
};

/** Parses the cache directives of a request. Pragma is deprecated (RFC 9111 §5.4). */
export function requestDirectives(fields: Fields): RequestDirectives {
  const field = fields['cache-control'];
  if (field === undefined) return noDirectives;
  const directives = parseDirectives(field);
  const ms = (name: string): number | undefined => {
    const seconds = secondsOf(directives, name);
    return seconds === undefined ? undefined : seconds * 1000;
  };
  return {
    noStore: directives.has('no-store'),
    noCache: directives.has('no-cache'),
    onlyIfCached: directives.has('only-if-cached'),
    maxAgeMs: ms('max-age') ?? Infinity,
    minFreshMs: ms('min-fresh') ?? 0,
    maxStaleMs: directives.get('max-stale') === true ? Infinity : (ms('max-stale') ?? 0),
    staleIfErrorMs: ms('stale-if-error') ?? 0,
  };
}
