import type { Rates } from '../../fair/rates.ts';
import { parsePlace } from '../place.ts';
import type { Execute } from '../execute.ts';
import type { Call, CountPage } from '../operation.ts';
import type { RequestTarget } from '../../http/request.ts';
import { isJsonObject } from '../../values/json/json.ts';

/** The operations that answer what a page or breadcrumb of the site answers. */
const ofPlaces: ReadonlySet<string> = new Set(
  ['get', 'get_render', 'get_content', 'get_resolve', 'link.htm'].map(
    (verb) => `svc1.userinterface.${verb}`,
  ),
);

/** A call of an operation, as far as rates are concerned. */
interface RatedCall extends Pick<Call, 'origin' | 'fields' | 'caller' | 'visitor'> {
  readonly name: string;
  readonly v: unknown;
  /** Paths for whose rates it has been counted before; the last one is that of the operation. */
  readonly countedFor: readonly string[];
}

/**
 * Counts a call for the rates of the page or breadcrumb that it asks for: they would hold for
 * nobody if this way to the same source were open. Throws or rejects with `rate_limited`.
 */
export function countForPlace(
  rates: Rates | undefined,
  { name, v, origin, fields, caller, visitor, countedFor }: RatedCall,
): void | Promise<void> {
  if (rates === undefined || !ofPlaces.has(name) || !isJsonObject(v)) return undefined;
  const place = placeOf(v, origin);
  if (place === undefined) return undefined;
  return rates.count({ ...place, ...ratedBy({ fields, caller, visitor }), countedFor });
}

/**
 * Makes the count of the pages that one call asks for. The call has counted for the first of them:
 * each further one counts for the operation and its key again.
 */
export function createPageCount(
  {
    rates,
    execute,
  }: { readonly rates: Rates | undefined; readonly execute: Pick<Execute, 'count'> },
  call: Omit<RatedCall, 'name' | 'v'>,
): CountPage {
  const { origin, caller, countedFor } = call;
  let isFirst = true;
  return async (page) => {
    if (!isFirst) {
      execute.count(caller);
      await rates?.count({ origin, path: countedFor.at(-1) ?? '/', ...ratedBy(call) });
    }
    isFirst = false;
    const place = placeOf(page, origin);
    if (place !== undefined) await rates?.count({ ...place, ...ratedBy(call), countedFor });
  };
}

/** What rates know of the caller. */
function ratedBy({ fields, caller, visitor }: Pick<RatedCall, 'fields' | 'caller' | 'visitor'>) {
  return {
    fields,
    address: caller.address,
    visitor: () => visitor,
    keyId: () => caller.keyId,
  };
}

/** The place in an input; undefined without one, or for one that the operation refuses. */
function placeOf(
  { origin, path, k }: Readonly<Record<string, unknown>>,
  ownOrigin: string,
): RequestTarget | undefined {
  // A breadcrumb whose key is a path answers there, too.
  const written = path ?? k;
  const site = origin ?? ownOrigin;
  if (typeof written !== 'string' || typeof site !== 'string') return undefined;
  if (path === undefined && !written.startsWith('/')) return undefined;
  try {
    return parsePlace({ origin: site, path: written });
  } catch {
    return undefined;
  }
}
