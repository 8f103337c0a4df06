import { isWildcardOrigin } from '../values/network/origin-pattern.ts';
import { isBreadcrumbKey } from '../../modules/rules/rule.ts';
import { Failure } from '../values/failure.ts';
import { requestLineBytesMax } from '../http/limits.ts';
import type { RequestTarget } from '../http/request.ts';
import { encodeNonAscii, queryRefusal, readRequestPath } from '../values/path.ts';
import { parseRuleOrigin } from '../../modules/rules/operations/fields.ts';

/** The parts of a URL on the site. */
export interface Place {
  origin: string;
  path: string;
  query?: string;
}

/**
 * The target that a request for a place has. The path is as in a URL, or decoded, and may have a
 * query. Throws `invalid`.
 */
export function parsePlace({ origin, path, query = '' }: Place): RequestTarget {
  const [written, ownQuery] = splitQuery(path);
  const read = readRequestPath(encodeNonAscii(written));
  if ('reason' in read) {
    throw new Failure(
      'invalid',
      'path is not the path of a URL: /like/this, no . or .. segments.',
      {
        field: 'path',
      },
    );
  }
  return {
    origin: parseOrigin(origin),
    ...read,
    query: joinQueries(ownQuery, query),
  };
}

/** An origin in canonical form; throws `invalid` for anything else. */
export function parseOrigin(text: string, field = 'origin'): string {
  const origin = parseRuleOrigin(text);
  if (origin === undefined || origin === '*' || isWildcardOrigin(origin)) {
    throw new Failure('invalid', `${field} must be scheme://host[:port], with http or https.`, {
      field,
    });
  }
  return origin;
}

/**
 * The target of a URL as a person writes it, or of a path alone at `origin`; `query` is added to
 * its own one, and a fragment is ignored, as a browser does not send it. Throws `invalid` for a URL
 * that request validation refuses.
 */
export function parseUrl(
  url: string,
  { origin, query }: { readonly origin: string; readonly query: string },
): RequestTarget {
  const [whole = ''] = url.split('#', 1);
  const [site] = /^https?:\/\/[^/?]*/i.exec(whole) ?? [];
  const [written, ownQuery] = splitQuery(whole.slice(site?.length ?? 0));
  const read = readRequestPath(
    site !== undefined && written === '' ? '/' : encodeNonAscii(written),
  );
  if ('reason' in read) {
    throw new Failure('invalid', `The server refuses this url: ${read.reason}.`, { field: 'url' });
  }
  return {
    origin: site === undefined ? origin : parseOrigin(site, 'url'),
    ...read,
    query: joinQueries(encodeNonAscii(ownQuery), query),
  };
}

/**
 * A query, such as a browser's `location.search`, without a leading `?`. Throws `invalid` for a
 * query that request validation refuses.
 */
export function parseQueryText(query: string): string {
  return query === '' ? '' : joinQueries('', encodeNonAscii(query));
}

/** Throws `invalid` for a text that cannot be a breadcrumb's key. */
export function requireBreadcrumbKey(k: string): void {
  if (isBreadcrumbKey(k)) return;
  throw new Failure('invalid', 'k must have 1 to 512 characters, none a control character.', {
    field: 'k',
  });
}

function splitQuery(text: string): readonly [path: string, query: string] {
  const mark = text.indexOf('?');
  return mark === -1 ? [text, ''] : [text.slice(0, mark), text.slice(mark + 1)];
}

/** Joins two queries; throws `too_large` for one that no visitor can send. */
function joinQueries(one: string, other: string): string {
  const query = [one, other.replace(/^\?/, '')].filter((part) => part !== '').join('&');
  if (query.length > requestLineBytesMax) {
    throw new Failure('too_large', `A query has at most ${requestLineBytesMax} characters.`, {
      field: 'query',
    });
  }
  const refusal = queryRefusal(query);
  if (refusal === undefined) return query;
  throw new Failure('invalid', `The server refuses this query: ${refusal.reason}.`, {
    field: 'query',
  });
}
