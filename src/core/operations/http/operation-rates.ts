import type { Rates } from '../../../modules/rates/rates.ts';
import { parsePlace } from '../place.ts';
import type { Call } from '../operation.ts';
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
  /** Paths for whose rates it has been counted before. */
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
  return rates.count({
    ...{ origin: place.origin, path: place.path, fields, countedFor },
    address: caller.address,
    visitor: () => visitor,
    keyId: () => caller.keyId,
  });
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
