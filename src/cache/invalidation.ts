import { fieldLines, type Reply } from '../http/reply.ts';
import type { RequestTarget } from '../http/request.ts';
import { isSafe } from '../model/method.ts';
import { canonicalPath, urlOf } from '../model/path.ts';
import type { ReceivedResponse } from './received-response.ts';
import { freshnessOf } from './freshness.ts';

/**
 * The URLs of which nothing kept is to be believed any more after an answer (RFC 9111 §4.4): that
 * of the request, and those of the same origin that Location and Content-Location name. None after
 * a safe method, nor after an error; of a method that is not known nobody knows that it is safe.
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
 * Whether the answer to a POST is what a GET would get (RFC 9110 §9.3.3): it says that it is the
 * target's representation, and for how long.
 */
export function isGetEquivalent(
  url: string,
  method: string,
  { received }: ReceivedResponse,
): boolean {
  if (method !== 'POST' || received.status !== 200) return false;
  const [reference] = fieldLines(received.fields, 'content-location');
  if (reference === undefined || sameOrigin(reference, url) !== url) return false;
  return freshnessOf(received).isExplicit;
}

/** The one URL that a reference leads to; undefined where that is of another origin, or none. */
function sameOrigin(reference: string, url: string): string | undefined {
  const led = URL.parse(reference, url);
  const { origin } = new URL(url);
  const path = led?.origin === origin ? canonicalPath(led.pathname) : undefined;
  if (led === null || path === undefined) return undefined;
  return urlOf({ origin, path, query: led.search.slice(1) });
}
