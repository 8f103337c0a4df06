import { fieldLines, replyField, withoutFields, type FieldList } from '../http/reply.ts';
import { type Directives, fieldsOf, governingDirectives } from './directives.ts';
import { freshnessOf, type Freshness, type ReceivedHeader } from './freshness.ts';
import { isHeuristicallyCacheable, isStorable, isUnderstood } from './cacheable-status.ts';

/**
 * Why a shared cache must not store the response to a GET (RFC 9111 §3), as a Cache-Status token;
 * undefined if it is storable. `hasCredentials`: the request carried credentials.
 */
export function refusalToStore(
  received: ReceivedHeader,
  { hasCredentials }: { readonly hasCredentials: boolean },
): string | undefined {
  const { status, fields } = received;
  const { directives } = governingDirectives(fields);
  if (hasCredentials && !allowsSharedUse(directives)) return credentialsRefusal;
  if (!isStorable(status)) return 'status';
  if (directives.has('must-understand')) {
    // The no-store beside it is for caches that do not know must-understand (§5.2.2.3).
    if (!isUnderstood(status)) return 'must-understand';
  } else if (directives.has('no-store')) return 'no-store';
  if (fieldsOf(directives, 'private') === 'all') return 'private';
  if (variesByAll(fields)) return 'vary';
  const freshness = freshnessOf(received);
  if (!freshness.isExplicit) {
    if (!isHeuristicallyCacheable(status) && !directives.has('public')) return 'status';
    // A response to an identified visitor is shared only if the source says `public`.
    const isPersonal = hasCredentials || fieldLines(fields, 'set-cookie').length > 0;
    if (isPersonal && !directives.has('public')) return 'cookie';
  }
  return isReusableLater(freshness, fields) ? undefined : 'expired';
}

/**
 * The reason for a response to a request with credentials. Such a response says nothing about what
 * other clients get.
 */
export const credentialsRefusal = 'credentials';

/** The directives that allow storing a response to credentials (RFC 9111 §3.5). */
function allowsSharedUse(directives: Directives): boolean {
  return ['public', 's-maxage', 'must-revalidate'].some((name) => directives.has(name));
}

function variesByAll(fields: FieldList): boolean {
  return fieldLines(fields, 'vary').some((line) =>
    line.split(',').some((name) => name.trim() === '*'),
  );
}

/** Whether a stored response could be reused: it has a lifetime or a validator. */
function isReusableLater(freshness: Freshness, fields: FieldList): boolean {
  if (replyField({ fields }, 'etag') !== undefined) return true;
  if (replyField({ fields }, 'last-modified') !== undefined) return true;
  const { lifetimeMs, staleWhileRevalidateMs, staleIfErrorMs } = freshness;
  return !freshness.isValidatedAlways && lifetimeMs + staleWhileRevalidateMs + staleIfErrorMs > 0;
}

/** The fields of a response, by whether they are stored. Age is in neither: it is computed. */
interface SplitFields {
  readonly stored: FieldList;
  /** For the requesting client only. */
  readonly privateFields: FieldList;
}

/**
 * Separates the fields that a qualified `no-cache` or `private` names from those that are stored
 * (RFC 9111 §3.1).
 */
export function splitFields(fields: FieldList): SplitFields {
  const { directives } = governingDirectives(fields);
  const named = [fieldsOf(directives, 'no-cache'), fieldsOf(directives, 'private')];
  const names = new Set(named.filter((one) => one !== 'all').flat());
  const isNamed = (at: number): boolean => names.has(fields[at - (at % 2)]?.toLowerCase() ?? '');
  return {
    stored: withoutFields(
      names.size === 0 ? fields : fields.filter((_, at) => !isNamed(at)),
      'age',
    ),
    privateFields: names.size === 0 ? [] : fields.filter((_, at) => isNamed(at)),
  };
}
