import { fieldLines, replyField, withoutFields, type FieldList } from '../http/reply.ts';
import { type Directives, fieldsOf, governingDirectives } from './directives.ts';
import { freshnessOf, type Freshness, type ReceivedHeader } from './freshness.ts';
import { isHeuristicallyCacheable, isStorable, isUnderstood } from './cacheable-status.ts';

/**
 * Why a shared cache does not keep the answer to a GET (RFC 9111 §3), as Cache-Status may tell it;
 * undefined for one that it keeps. `hasCredentials`: the source was told which client asks.
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
    // What follows it says no-store to caches that do not know the directive (§5.2.2.3).
    if (!isUnderstood(status)) return 'must-understand';
  } else if (directives.has('no-store')) return 'no-store';
  if (fieldsOf(directives, 'private') === 'all') return 'private';
  if (variesByAll(fields)) return 'vary';
  const freshness = freshnessOf(received);
  if (!freshness.isExplicit) {
    if (!isHeuristicallyCacheable(status) && !directives.has('public')) return 'status';
    // What a source tells one visitor it tells others only where it says so.
    const isPersonal = hasCredentials || fieldLines(fields, 'set-cookie').length > 0;
    if (isPersonal && !directives.has('public')) return 'cookie';
  }
  return isReusableLater(freshness, fields) ? undefined : 'expired';
}

/**
 * The refusal of an answer to a request with credentials. Such an answer says nothing about what
 * other clients get.
 */
export const credentialsRefusal = 'credentials';

/** What lets an answer to somebody's credentials be used for others (RFC 9111 §3.5). */
function allowsSharedUse(directives: Directives): boolean {
  return ['public', 's-maxage', 'must-revalidate'].some((name) => directives.has(name));
}

function variesByAll(fields: FieldList): boolean {
  return fieldLines(fields, 'vary').some((line) =>
    line.split(',').some((name) => name.trim() === '*'),
  );
}

/** Whether an answer can be used at all once it has been sent: it is fresh, or can be validated. */
function isReusableLater(freshness: Freshness, fields: FieldList): boolean {
  if (replyField({ fields }, 'etag') !== undefined) return true;
  if (replyField({ fields }, 'last-modified') !== undefined) return true;
  const { lifetimeMs, staleWhileRevalidateMs, staleIfErrorMs } = freshness;
  return !freshness.isValidatedAlways && lifetimeMs + staleWhileRevalidateMs + staleIfErrorMs > 0;
}

/** The fields of an answer, by whether they are kept; Age, which is said anew, is in neither. */
interface SplitFields {
  readonly stored: FieldList;
  /** For the one alone who asked. */
  readonly privateFields: FieldList;
}

/**
 * The fields of an answer that are kept (RFC 9111 §3.1): those that no qualified `no-cache` or
 * `private` names.
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
