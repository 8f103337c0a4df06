import { authorityOf } from '../../../core/http/field-template.ts';
import { withoutOwnCookies } from '../../../core/http/own-cookies.ts';
import { discard, type Reply } from '../../../core/http/reply.ts';
import type { AccessClient, RequestTarget } from '../../../core/http/request.ts';
import { Failure, failureFrom } from '../../../core/values/failure.ts';
import { type FoundRule, accessOf } from '../rule.ts';
import { isRuleInside, type Bounds } from '../../../core/values/bounds.ts';
import { hasScope, type Caller } from '../../../core/values/key.ts';
import type { Location, Visitor } from '../../../core/http/visitor.ts';
import { servicePath } from '../../../core/values/path.ts';
import type { RowReader, SiteAccess } from '../site-access.ts';
import type { Reads } from '../../../core/log/store.ts';
import { isSourceInside, requireInside, rulesInside } from '../bounds/rules.ts';
import { asOfProperty, seqOfMoment, timeThen } from '../../../core/operations/records/moment.ts';
import type { Call } from '../../../core/operations/operation.ts';
import { parsePlace, type Place } from '../../../core/operations/place.ts';
import { isPreview, previewTimeMs } from './preview.ts';
import type { ViewConfig } from './rule-view.ts';
import { storedRules } from '../log/family.ts';

/** The parts that the operations of the scope render need. */
export interface PageParts {
  readonly site: SiteAccess;
  readonly store: Pick<Reads, 'seq' | 'seqAt' | 'change' | 'of'>;
  readonly view: ViewConfig;
  /** The rows that pages show in previews: those that a caller may read. */
  readonly rowsFor: (call: Call) => RowReader;
  /** The rows that pages showed at a moment, for a caller. */
  readonly pastRows: (moment: { readonly seq: number; readonly call: Call }) => RowReader;
  /** The location of an address. */
  readonly locationOf: (address: string) => Promise<Location>;
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
  if (asOf === undefined) {
    return isPreview(v) ? site.withRows(rowsFor(call), previewTimeMs(v)) : site;
  }
  const seq = seqOfMoment(store, 'as_of', asOf);
  const { caller } = call;
  const timeMs = timeOf(store, asOf, call);
  if (hasScope(caller, 'read'))
    return site.at(store.of(storedRules).at(seq), pastRows({ seq, call }), timeMs);
  throw new Failure(
    caller.keyId === undefined ? 'unauthenticated' : 'forbidden',
    'as_of needs an API key with the scope read. Send one, or leave as_of out.',
    { field: 'as_of' },
  );
}

/** The time of a moment of the past, or of a call, in milliseconds since 1970. */
function timeOf(
  store: PageParts['store'],
  asOf: string | undefined,
  { visitor }: Pick<Call, 'visitor'>,
): number {
  return timeThen(store, asOf) ?? visitor.nowMs;
}

/**
 * The place of an input, at which visitors can find content: paths below `{base}/svc1` belong to
 * Waymark, whatever rules and files exist (docs/design/requests.md#precedence). Throws `invalid`,
 * `not_found` for such a path, and `forbidden` for a place outside of the bounds of the caller.
 */
export function contentPlace(v: Place, { base }: ViewConfig, caller: Caller): RequestTarget {
  const where = parsePlace(v);
  requireInside(caller, where);
  if (servicePath(where.path, base) === undefined) return where;
  throw new Failure(
    'not_found',
    `${where.path} belongs to Waymark itself: no page is served there. Use a path outside ` +
      `${base}/svc1.`,
    { field: 'path' },
  );
}

/**
 * The caller of an operation as the client whose access counts, also in a preview. `where` is what
 * it asks for: a page of another host of this server is as foreign as one of another server, and
 * its browser says of neither that it is no program.
 */
export function clientOf(
  { fields, visitor, origin, caller }: Call,
  where: Pick<RequestTarget, 'origin'> = { origin },
): AccessClient {
  const isOfOther = fields.origin !== undefined && fields.origin !== origin;
  const isForeign = isOfOther || asksForOther({ origin, caller }, where);
  return { fields: withoutOwnCookies(fields), visitor, isForeign };
}

/**
 * The caller of an operation as a visitor of what it asks for: signed out where it asks for a page
 * of another host than its own, which could otherwise act there in the name of who opened it.
 */
export function visitorAt(call: Call, where: Pick<RequestTarget, 'origin'>): Visitor {
  const { visitor, fields } = call;
  // The browser says of which page the call is: it asks for itself, at a host for operations.
  const isOwn = fields.origin === where.origin;
  return isOwn || !asksForOther(call, where) ? visitor : visitor.with({ isSignedOut: true });
}

function asksForOther(
  { origin, caller }: Pick<Call, 'origin' | 'caller'>,
  where: Pick<RequestTarget, 'origin'>,
): boolean {
  return authorityOf(where.origin) !== authorityOf(origin) && !readsAll(caller);
}

/** Whether a caller may read every page rule anyway. */
function readsAll(caller: Caller): boolean {
  return caller.keyId !== undefined && hasScope(caller, 'read');
}

/**
 * The rule that answers at a place, for the fields of a visitor, if the access rules let the caller
 * see it; callers with a key of the scope read may read every page rule anyway. `find` finds it.
 * Rejects as PlaceAccess.requirePlace, and as `find`.
 */
export async function visibleRule(
  { site: { access } }: Pick<PageParts, 'site'>,
  where: Pick<RequestTarget, 'origin' | 'path' | 'query'>,
  { call, find }: { readonly call: Call; readonly find: () => FoundRule },
): Promise<FoundRule> {
  if (readsAll(call.caller)) return find();
  const client = clientOf(call, where);
  await access.requirePlace(where, client);
  const found = find();
  await access.requireSection(accessOf(found.stored.rule), where, client);
  return found;
}

/**
 * Requires that the access rules let the caller see what answers at a place, if anything does; as
 * visibleRule otherwise.
 */
export async function requireVisible(
  { site }: Pick<PageParts, 'site'>,
  where: Pick<RequestTarget, 'origin' | 'path' | 'query'>,
  call: Call,
): Promise<void> {
  const { caller, fields } = call;
  if (readsAll(caller)) return;
  const client = clientOf(call, where);
  await site.access.requirePlace(where, client);
  const found = site.findRule({ ...where, fields });
  if (found === undefined) return;
  await site.access.requireSection(accessOf(found.stored.rule), where, client);
}

/**
 * The rule that answers at a place. Throws `not_found`, also if it is outside of the bounds of the
 * caller.
 */
export function winningRule(
  site: SiteAccess,
  where: Pick<RequestTarget, 'origin' | 'path'>,
  { fields, caller }: Pick<Call, 'fields' | 'caller'>,
): FoundRule {
  const found = site.findRule({ ...where, fields });
  if (found === undefined || !isRuleInside(caller.bounds, found.stored.rule)) throw noRule(where);
  return found;
}

/**
 * The reply of a place, if a page rule inside of the bounds of the caller makes it: the rules are
 * those of the moment that the input names. Throws `not_found`.
 */
export async function replyInside(
  parts: Pick<PageParts, 'store'>,
  { reply, where, asOf }: ReplyThen,
  { bounds }: Pick<Caller, 'bounds'>,
): Promise<Reply> {
  if (bounds === undefined) return reply;
  const seen = sourcesInside(parts, asOf, bounds);
  try {
    const answer = await reply;
    if (seen(answer.source)) return answer;
    await discard(answer);
  } catch (error) {
    if (seen(failureFrom(error).source)) throw error;
  }
  throw noRule(where);
}

/** Whether a source is a page rule inside of bounds, at a moment or now. */
function sourcesInside(
  { store }: Pick<PageParts, 'store'>,
  asOf: string | undefined,
  bounds: Bounds,
): (source: string | undefined) => boolean {
  const live = store.of(storedRules);
  const rules = asOf === undefined ? live : live.at(seqOfMoment(store, 'as_of', asOf));
  return isSourceInside(rulesInside(rules, bounds));
}

/** The reply of a place, at a moment of the past or now. */
interface ReplyThen {
  readonly reply: Reply | Promise<Reply>;
  readonly where: Pick<RequestTarget, 'origin' | 'path'>;
  readonly asOf: string | undefined;
}

function noRule({ origin, path }: Pick<RequestTarget, 'origin' | 'path'>): Failure {
  return new Failure('not_found', `No page rule answers ${origin}${path}.`);
}

/**
 * The site as an input asks for it, in which a bound caller resolves breadcrumbs: those outside are
 * not there. Throws as siteFor, and `forbidden` for a key outside.
 */
export function breadcrumbSite(
  parts: Pick<PageParts, 'site' | 'store' | 'rowsFor' | 'pastRows'>,
  v: { readonly k: string; readonly origin?: string; readonly as_of?: string },
  call: Call,
): SiteAccess {
  const site = siteFor(parts, v, call);
  const { caller } = call;
  const { bounds } = caller;
  if (bounds === undefined) return site;
  requireInside(caller, { origin: v.origin ?? call.origin, path: v.k }, 'k');
  const { store, rowsFor, pastRows } = parts;
  const timeMs = previewTimeMs(v) ?? timeOf(store, v.as_of, call);
  if (v.as_of === undefined)
    return site.at(rulesInside(store.of(storedRules), bounds), rowsFor(call), timeMs);
  const seq = seqOfMoment(store, 'as_of', v.as_of);
  return site.at(
    rulesInside(store.of(storedRules).at(seq), bounds),
    pastRows({ seq, call }),
    timeMs,
  );
}
