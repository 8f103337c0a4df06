import { isBreadcrumbKey } from '../../model/rule.ts';
import { Failure } from '../../model/failure.ts';
import { requestLineBytesMax } from '../../http/limits.ts';
import { canonicalPath, encodeNonAscii, queryRefusal, readPath } from '../../model/path.ts';
import { parseRuleOrigin } from './fields.ts';

/** A visible URL in its parts. */
export interface Place {
  origin: string;
  path: string;
  query?: string;
}

/**
 * The origin and path of a visible URL in canonical form; the path is written as in a URL, or
 * decoded already, and may bring a query along. Throws `invalid`, naming the field.
 */
export function parsePlace({ origin, path, query = '' }: Place): Required<Place> {
  const [written, ownQuery] = splitQuery(path);
  const canonical = canonicalPath(encodeNonAscii(written));
  if (canonical === undefined) {
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
    path: canonical,
    query: joinQueries(ownQuery, query),
  };
}

/** An origin in canonical form; throws `invalid` for anything else. */
export function parseOrigin(text: string, field = 'origin'): string {
  const origin = parseRuleOrigin(text);
  if (origin === undefined || origin === '*') {
    throw new Failure('invalid', `${field} must be scheme://host[:port], with http or https.`, {
      field,
    });
  }
  return origin;
}

/**
 * The place of a URL as a person writes it, or of a path alone, which is one of `origin`; `query`
 * is more of it, and a fragment never leaves a browser. Throws `invalid` for what the door refuses.
 */
export function parseUrl(
  url: string,
  { origin, query }: { readonly origin: string; readonly query: string },
): Required<Place> {
  const [whole = ''] = url.split('#', 1);
  const [site] = /^https?:\/\/[^/?]*/i.exec(whole) ?? [];
  const [written, ownQuery] = splitQuery(whole.slice(site?.length ?? 0));
  const path = readPath(site !== undefined && written === '' ? '/' : encodeNonAscii(written));
  if (typeof path !== 'string') {
    throw new Failure('invalid', `url is not let in: ${path.reason}.`, { field: 'url' });
  }
  return {
    origin: site === undefined ? origin : parseOrigin(site, 'url'),
    path,
    query: joinQueries(encodeNonAscii(ownQuery), query),
  };
}

/**
 * A query as a caller writes it, such as a browser's `location.search`, without the `?` that it may
 * begin with. Throws `invalid` for what the door refuses.
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

/** A query is no longer than one that a visitor can send, with the rest of its request line. */
function joinQueries(one: string, other: string): string {
  const query = [one, other.replace(/^\?/, '')].filter((part) => part !== '').join('&');
  if (query.length > requestLineBytesMax) {
    throw new Failure('too_large', `A query has at most ${requestLineBytesMax} characters.`, {
      field: 'query',
    });
  }
  const refusal = queryRefusal(query);
  if (refusal === undefined) return query;
  throw new Failure('invalid', `The query is not let in: ${refusal.reason}.`, { field: 'query' });
}
