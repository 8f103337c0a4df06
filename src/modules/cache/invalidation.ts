import { type Reply, fieldLines } from '../../core/http/reply.ts';
import { type RequestTarget, isSafe } from '../../core/http/request.ts';
import { canonicalPath, urlOf } from '../../core/values/path.ts';
import { freshnessOf } from './freshness.ts';
import type { ReceivedResponse } from './storability.ts';

/**
 * The canonical URLs that a response invalidates (RFC 9111 §4.4): that of the request, and those of
 * the same origin in Location and Content-Location. None after a safe method or an error. Unknown
 * methods count as unsafe.
 */
export function invalidatedUrls(
  target: RequestTarget,
  method: string,
  { status, fields }: Pick<Reply, 'status' | 'fields'>,
): readonly string[] {
  if (isSafe(method) || status >= 400) return [];
  const url = urlOf(target);
  const named = ['location', 'content-location'].flatMap((name) => fieldLines(fields, name));
  return [...new Set([url, ...named.flatMap((reference) => sameOrigin(reference, url) ?? [])])];
}

/**
 * Whether the response to a POST may answer a GET (RFC 9110 §9.3.3): its Content-Location is the
 * target, and it has an explicit lifetime.
 */
export function isGetEquivalent(
  target: RequestTarget,
  method: string,
  { received }: ReceivedResponse,
): boolean {
  if (method !== 'POST' || received.status !== 200) return false;
  const [reference] = fieldLines(received.fields, 'content-location');
  const url = urlOf(target);
  if (reference === undefined || sameOrigin(reference, url) !== url) return false;
  return freshnessOf(received).isExplicit;
}

/** Resolves a reference; undefined if it is invalid or of another origin. */
function sameOrigin(reference: string, url: string): string | undefined {
  const led = URL.parse(reference, url);
  const { origin } = new URL(url);
  const path = led?.origin === origin ? canonicalPath(led.pathname) : undefined;
  if (led === null || path === undefined) return undefined;
  return urlOf({ origin, path, query: led.search.slice(1) });
}
