import { withoutOwnCookies } from '../../http/own-cookies.ts';
import type { AccessClient, RequestTarget } from '../../http/request.ts';
import { Failure } from '../../model/failure.ts';
import type { FoundRule } from '../../model/rule.ts';
import { hasScope } from '../../model/key.ts';
import type { Location } from '../../model/visitor.ts';
import { servicePath } from '../../model/path.ts';
import type { RowReader } from '../../rendering/rendered-pages.ts';
import type { Reads } from '../../store/store.ts';
import { asOfProperty, seqOfMoment } from '../records/moment.ts';
import type { Call } from '../operation.ts';
import type { SiteAccess } from '../site-access.ts';
import { parsePlace, type Place } from './place.ts';
import { isPreview } from './preview.ts';
import type { ViewConfig } from './rule-view.ts';

/** The parts that the operations of the scope render need. */
export interface PageParts {
  readonly site: SiteAccess;
  readonly store: Pick<Reads, 'seq' | 'seqAt' | 'at' | 'change' | 'rule'>;
  readonly view: ViewConfig;
  /** The rows that pages show in previews: those that a caller may read. */
  readonly rowsFor: (call: Call) => RowReader;
  /** The rows that pages showed at a moment, for a caller. */
  readonly pastRows: (moment: { readonly seq: number; readonly call: Call }) => RowReader;
  /** The location of an address. */
  readonly locationOf: (address: string) => Promise<Location>;
}

/** A place of the site, now or at a moment of the past. */
export interface PlaceThen extends Place {
  as_of?: string;
}

/** The input schema of a place. */
export const placeInput = {
  type: 'object',
  required: ['origin', 'path'],
  properties: {
    origin: { type: 'string', description: 'Such as https://example.com.' },
    path: { type: 'string', description: 'As in a URL, or decoded; a query may follow.' },
    query: { type: 'string', nullable: true },
    as_of: asOfProperty,
  },
} as const;

/**
 * The site as an input asks for it: with the page rules of a moment, and, for a described visitor,
 * with the rows that the caller may read. Only callers with the scope read see the past: what was
 * removed from the site stays invisible to visitors (docs/design/operations.md#one-definition).
 */
export function siteFor(
  { site, store, rowsFor, pastRows }: Pick<PageParts, 'site' | 'store' | 'rowsFor' | 'pastRows'>,
  v: { readonly as_of?: string },
  call: Call,
): SiteAccess {
  const { as_of: asOf } = v;
  if (asOf === undefined) return isPreview(v) ? site.withRows(rowsFor(call)) : site;
  const seq = seqOfMoment(store, 'as_of', asOf);
  const { caller } = call;
  if (hasScope(caller, 'read')) return site.at(store.at(seq), pastRows({ seq, call }));
  throw new Failure(
    caller.keyId === undefined ? 'unauthenticated' : 'forbidden',
    'as_of needs an API key with the scope read. Send one, or leave as_of out.',
    { field: 'as_of' },
  );
}

/**
 * The place of an input, at which visitors can find content: paths below `{base}/svc1` belong to
 * Waymark, whatever rules and files exist (docs/design/requests.md#precedence). Throws `invalid`,
 * and `not_found` for such a path.
 */
export function contentPlace(v: Place, { base }: ViewConfig): RequestTarget {
  const where = parsePlace(v);
  if (servicePath(where.path, base) === undefined) return where;
  throw new Failure(
    'not_found',
    `${where.path} belongs to Waymark itself: no page is served there. Use a path outside ` +
      `${base}/svc1.`,
    { field: 'path' },
  );
}

/** The caller of an operation as the client whose access counts, also in a preview. */
export function clientOf({ fields, visitor, origin }: Call): AccessClient {
  const isForeign = fields.origin !== undefined && fields.origin !== origin;
  return { fields: withoutOwnCookies(fields), visitor, isForeign };
}

/**
 * Requires that the access rules let the caller see a place; callers with a key of the scope read
 * may read every page rule anyway. Rejects as SiteAccess.requireAccess.
 */
export async function requireRuleAccess(
  { site }: Pick<PageParts, 'site'>,
  where: Pick<RequestTarget, 'origin' | 'path' | 'query'>,
  call: Call,
): Promise<void> {
  const { caller } = call;
  if (caller.keyId !== undefined && hasScope(caller, 'read')) return;
  await site.requireAccess(where, clientOf(call));
}

/** The rule that answers at a place. Throws `not_found`. */
export function winningRule(
  site: SiteAccess,
  where: Pick<RequestTarget, 'origin' | 'path'>,
  { fields }: Pick<Call, 'fields'>,
): FoundRule {
  const found = site.findRule({ ...where, fields });
  if (found === undefined) {
    throw new Failure('not_found', `No page rule answers ${where.origin}${where.path}.`);
  }
  return found;
}
