import { parseHttpDate } from '../http/date.ts';
import { fieldLines, type FieldList } from '../http/reply.ts';
import { heuristicLifetimeMsMax } from '../model/limits.ts';
import { type Directives, fieldsOf, governingDirectives, secondsOf } from './directives.ts';
import { isHeuristicallyCacheable } from './cacheable-status.ts';

/** An answer of a source as far as it says how long it holds. */
export interface ReceivedHeader {
  /** The status that the source gave it. */
  readonly status: number;
  readonly fields: FieldList;
  /** Milliseconds since 1970: when it was asked for, and when its header section was there. */
  readonly requestMs: number;
  readonly responseMs: number;
}

/** How long an answer holds (RFC 9111 §4.2), and what may be done with it afterwards. */
export interface Freshness {
  readonly lifetimeMs: number;
  /** Whether the source has said how long, and it was not guessed. */
  readonly isExplicit: boolean;
  /** Milliseconds since 1970 when its age was nothing; its age goes on from there. */
  readonly bornMs: number;
  /** Whether it is not to be used without asking the source (`no-cache`, §5.2.2.4). */
  readonly isValidatedAlways: boolean;
  /** Whether it must never be used stale, not even where the source cannot be reached (§4.2.4). */
  readonly isNeverStale: boolean;
  /** How long past its lifetime it may be used while the source is asked anew (RFC 5861 §3). */
  readonly staleWhileRevalidateMs: number;
  /** How long past its lifetime it may stand in for an error (RFC 5861 §4). */
  readonly staleIfErrorMs: number;
}

/** How long an answer holds for a shared cache. */
export function freshnessOf(received: ReceivedHeader): Freshness {
  const { directives, isTargeted } = governingDirectives(received.fields);
  const explicitMs = explicitLifetimeMs(received, directives, isTargeted);
  const forbids = ['must-revalidate', 'proxy-revalidate'].some((name) => directives.has(name));
  const whileMs = seconds(directives, 'stale-while-revalidate');
  const ifErrorMs = seconds(directives, 'stale-if-error');
  const isValidatedAlways = fieldsOf(directives, 'no-cache') === 'all';
  // A source that sends s-maxage (§5.2.2.10) and the window of RFC 5861 side by side means both.
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

/** How old an answer is at a moment (RFC 9111 §4.2.3), in milliseconds. */
export function ageMs({ bornMs }: Freshness, nowMs: number): number {
  return Math.max(0, nowMs - bornMs);
}

/** How much longer an answer holds; negative for one that is stale, by how long it is. */
export function remainingMs(freshness: Freshness, nowMs: number): number {
  return freshness.lifetimeMs - ageMs(freshness, nowMs);
}

/**
 * An HTTP-date in milliseconds since 1970; undefined for none. Caches read it in any case of its
 * letters (RFC 9111 §4.2), its two-digit years by what was received with it.
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

/** What the source has said (RFC 9111 §4.2.1); undefined where it has not. */
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
  // What is no date means that it is over already (§5.3).
  return expiresMs === undefined ? 0 : Math.max(0, expiresMs - dateMs(fields, responseMs));
}

/** A tenth of the time for which it has not changed (RFC 9111 §4.2.2). */
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

/** How old it was when it arrived (RFC 9111 §4.2.3). */
function initialAgeMs({ fields, requestMs, responseMs }: ReceivedHeader): number {
  // Of a list the first member counts (§5.1); what is no number says nothing.
  const [said = ''] = fieldLines(fields, 'age').join(',').split(',', 1);
  const saidMs = /^[ \t]*\d+[ \t]*$/.test(said) ? Number(said) * 1000 : 0;
  const apparentMs = Math.max(0, responseMs - dateMs(fields, responseMs) - wholeSecondMs);
  return Math.max(apparentMs, saidMs + responseMs - requestMs);
}

/** A Date is cut to the second: up to this much of what it lies back is no age. */
const wholeSecondMs = 999;

function dateMs(fields: FieldList, receivedMs: number): number {
  return cachedDateMs(fieldLines(fields, 'date')[0], receivedMs) ?? receivedMs;
}

function seconds(directives: Directives, name: string): number {
  return (secondsOf(directives, name) ?? 0) * 1000;
}
