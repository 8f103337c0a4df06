import { parseHttpDate } from '../../core/http/date.ts';
import { type FieldList, fieldLines } from '../../core/http/reply.ts';
import {
  type Directives,
  type RequestDirectives,
  fieldsOf,
  governingDirectives,
  secondsOf,
} from './directives.ts';

/** A difference of two clock readings up to this is jitter, not a change of the clock. */
const clockJitterMs = 1_000;

/** The longest lifetime of a response without an explicit one (RFC 9111 §4.2.2). */
const heuristicLifetimeMsMax = 86_400_000;

/** How long a stale response is used while its source cannot be reached. */
const staleUnreachableMsMax = 3_600_000;

/** The parts of a response that its freshness depends on. */
export interface ReceivedHeader {
  /** The status of the source. */
  readonly status: number;
  readonly fields: FieldList;
  /** When the request was sent and the header section arrived, in milliseconds since 1970. */
  readonly requestMs: number;
  readonly responseMs: number;
}

/** How long a response is fresh (RFC 9111 §4.2), and how it may be used when stale. */
export interface Freshness {
  readonly lifetimeMs: number;
  /** Whether the lifetime is explicit, not heuristic. */
  readonly isExplicit: boolean;
  /** When its age was 0, in milliseconds since 1970. */
  readonly bornMs: number;
  /** Whether each use needs a validation (`no-cache`, RFC 9111 §5.2.2.4). */
  readonly isValidatedAlways: boolean;
  /** Whether it must not be served stale, even if the source is unreachable (§4.2.4). */
  readonly isNeverStale: boolean;
  /** How long after its lifetime it may be served during a validation (RFC 5861 §3). */
  readonly staleWhileRevalidateMs: number;
  /** How long after its lifetime it may be served in place of an error (RFC 5861 §4). */
  readonly staleIfErrorMs: number;
}

/** The freshness of a response in a shared cache. */
export function freshnessOf(received: ReceivedHeader): Freshness {
  const { directives, isTargeted } = governingDirectives(received.fields);
  const explicitMs = explicitLifetimeMs(received, directives, isTargeted);
  const forbids = ['must-revalidate', 'proxy-revalidate'].some((name) => directives.has(name));
  const whileMs = seconds(directives, 'stale-while-revalidate');
  const ifErrorMs = seconds(directives, 'stale-if-error');
  const isValidatedAlways = fieldsOf(directives, 'no-cache') === 'all';
  // A source that sends both s-maxage (§5.2.2.10) and a directive of RFC 5861 wants both.
  const sharedAgeForbids = directives.has('s-maxage') && whileMs === 0 && ifErrorMs === 0;
  const isNeverStale = forbids || isValidatedAlways || sharedAgeForbids;
  return {
    lifetimeMs: explicitMs ?? heuristicLifetimeMs(received, directives),
    isExplicit: explicitMs !== undefined,
    bornMs: received.responseMs - initialAgeMs(received),
    isValidatedAlways,
    isNeverStale,
    staleWhileRevalidateMs: isNeverStale ? 0 : whileMs,
    staleIfErrorMs: isNeverStale ? 0 : ifErrorMs,
  };
}

/** The age of a response at a moment (RFC 9111 §4.2.3), in milliseconds. */
export function ageMs({ bornMs }: Freshness, nowMs: number): number {
  return Math.max(0, nowMs - bornMs);
}

/** The remaining lifetime of a response; negative if it is stale. */
export function remainingMs(freshness: Freshness, nowMs: number): number {
  return freshness.lifetimeMs - ageMs(freshness, nowMs);
}

/**
 * Parses an HTTP-date to milliseconds since 1970; undefined if it is invalid. Caches ignore the
 * case (RFC 9111 §4.2). Two-digit years are relative to `receivedMs`.
 */
export function cachedDateMs(text: string | undefined, receivedMs: number): number | undefined {
  if (text === undefined) return undefined;
  const exact = parseHttpDate(text, receivedMs);
  return exact ?? parseHttpDate(text.replace(/[a-z]+/gi, inDateCase), receivedMs);
}

function inDateCase(word: string): string {
  if (/^gmt$/i.test(word)) return 'GMT';
  return `${word.charAt(0).toUpperCase()}${word.slice(1).toLowerCase()}`;
}

/** The explicit lifetime (RFC 9111 §4.2.1); undefined if there is none. */
function explicitLifetimeMs(
  { fields, responseMs }: ReceivedHeader,
  directives: Directives,
  isTargeted: boolean,
): number | undefined {
  const said = secondsOf(directives, 's-maxage') ?? secondsOf(directives, 'max-age');
  if (said !== undefined) return said * 1000;
  const expires = isTargeted ? [] : fieldLines(fields, 'expires');
  if (expires.length === 0) return undefined;
  const expiresMs = cachedDateMs(expires.join(', '), responseMs);
  // An invalid date means that the response has expired (§5.3).
  return expiresMs === undefined ? 0 : Math.max(0, expiresMs - dateMs(fields, responseMs));
}

/** A tenth of the time since Last-Modified (RFC 9111 §4.2.2). */
function heuristicLifetimeMs(
  { status, fields, responseMs }: ReceivedHeader,
  directives: Directives,
): number {
  if (!isHeuristicallyCacheable(status) && !directives.has('public')) return 0;
  const modifiedMs = cachedDateMs(fieldLines(fields, 'last-modified')[0], responseMs);
  if (modifiedMs === undefined) return 0;
  const unchangedMs = dateMs(fields, responseMs) - modifiedMs;
  return Math.min(Math.max(0, unchangedMs / 10), heuristicLifetimeMsMax);
}

/** The age of a response when it arrived (RFC 9111 §4.2.3). */
function initialAgeMs({ fields, requestMs, responseMs }: ReceivedHeader): number {
  // The first member of a list counts (§5.1); an invalid number is ignored.
  const [said = ''] = fieldLines(fields, 'age').join(',').split(',', 1);
  const saidMs = /^[ \t]*\d+[ \t]*$/.test(said) ? Number(said) * 1000 : 0;
  const apparentMs = Math.max(0, responseMs - dateMs(fields, responseMs) - wholeSecondMs);
  return Math.max(apparentMs, saidMs + responseMs - requestMs);
}

/** Date has a resolution of one second: a difference up to this is no age. */
const wholeSecondMs = 999;

function dateMs(fields: FieldList, receivedMs: number): number {
  return cachedDateMs(fieldLines(fields, 'date')[0], receivedMs) ?? receivedMs;
}

function seconds(directives: Directives, name: string): number {
  return (secondsOf(directives, name) ?? 0) * 1000;
}

/**
 * How a stored response is used (RFC 9111 §4): fresh, stale, stale while it is validated (RFC 5861
 * §3), or only after validation.
 */
export type Reuse = 'fresh' | 'stale' | 'while_revalidating' | 'validate';

/** Decides how a stored response is used at a moment. */
export function reuseOf(freshness: Freshness, directives: RequestDirectives, nowMs: number): Reuse {
  if (freshness.isValidatedAlways || directives.noCache) return 'validate';
  if (ageMs(freshness, nowMs) > directives.maxAgeMs) return 'validate';
  const remaining = remainingMs(freshness, nowMs);
  if (remaining > 0 && remaining >= directives.minFreshMs) return 'fresh';
  // A request with min-fresh accepts no stale response.
  if (directives.minFreshMs > 0 || freshness.isNeverStale) return 'validate';
  if (directives.maxStaleMs > 0 && -remaining <= directives.maxStaleMs) return 'stale';
  return -remaining < freshness.staleWhileRevalidateMs ? 'while_revalidating' : 'validate';
}

/**
 * Whether a stale response may be served because the source is unreachable or returned an error
 * (RFC 9111 §4.2.4, RFC 5861 §4).
 */
export function mayServeStale(
  freshness: Freshness,
  failure: 'unreachable' | 'error',
  directives: RequestDirectives,
  nowMs: number,
): boolean {
  if (freshness.isNeverStale || directives.noCache) return false;
  if (ageMs(freshness, nowMs) > directives.maxAgeMs) return false;
  const staleMs = -remainingMs(freshness, nowMs);
  const unreachableMs = failure === 'unreachable' ? staleUnreachableMsMax : 0;
  const allowedMs = Math.max(freshness.staleIfErrorMs, directives.staleIfErrorMs, unreachableMs);
  return staleMs <= allowedMs && allowedMs > 0;
}

/** Whether responses of a status may have a heuristic lifetime (RFC 9111 §4.2.2). */
export function isHeuristicallyCacheable(status: number): boolean {
  return heuristicallyCacheable.has(status);
}

/** RFC 9110 §15.1. */
const heuristicallyCacheable: ReadonlySet<number> = new Set([
  200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501,
]);

/** A reading of the clock. */
export interface ClockReading {
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  /**
   * When the machine started, in milliseconds since 1970. It changes only when the clock is set.
   */
  readonly startMs: number;
}

/** Makes a clock reader; `uptimeMs` gives milliseconds since the machine started. */
export function clockReader(now: () => number, uptimeMs: () => number): () => ClockReading {
  return () => {
    const nowMs = now();
    return { nowMs, startMs: nowMs - uptimeMs() };
  };
}

/** Whether the clock was set to another time between two readings. */
export function wasSet(before: ClockReading, after: ClockReading): boolean {
  return Math.abs(before.startMs - after.startMs) > clockJitterMs;
}

/** The times of a stored response. */
interface DatedResponse {
  readonly freshness: Freshness;
  readonly storedAt?: ClockReading;
}

/**
 * Corrects the age of a stored response after the clock was set back: its age counts from as much
 * earlier. A response that was stored in the future is stale.
 */
export function byClock<T extends DatedResponse>(answer: T, clock: ClockReading): T {
  const { storedAt, freshness } = answer;
  const setBackMs = storedAt === undefined ? 0 : storedAt.startMs - clock.startMs;
  const bornMs = freshness.bornMs - (setBackMs > clockJitterMs ? setBackMs : 0);
  const isFuture = Math.max(bornMs, storedAt?.nowMs ?? bornMs) > clock.nowMs;
  if (bornMs === freshness.bornMs && !isFuture) return answer;
  const lifetimeMs = isFuture ? 0 : freshness.lifetimeMs;
  return { ...answer, freshness: { ...freshness, bornMs, lifetimeMs } };
}
