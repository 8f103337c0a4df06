import type { StaticInput, StaticOutput } from '../../core/values/json/static.ts';
import { whenReady } from '../../core/values/when-ready.ts';
import { Failure, failureFrom } from '../../core/values/failure.ts';
import { withoutOwnCookies } from '../../core/http/own-cookies.ts';
import type { ResponseHeaders } from '../headers/response-headers.ts';
import { rulesInside } from '../rules/bounds/rules.ts';
import { cachingFields, forOnePerson, keyData, keyReply, unsentReferrer } from './reply.ts';
import type { ResolvedBreadcrumb } from './resolve.ts';
import { type TokenHolder, type TokenParts, holderOf } from './token.ts';
import type { CountVisit } from './visit-counter.ts';
import { authorityOf } from '../../core/http/field-template.ts';
import type { Reply } from '../../core/http/reply.ts';
import { isPrefetch, prefetchPurpose } from '../../core/http/request.ts';
import { breadcrumbKeyCharactersMax } from '../../core/values/limits.ts';
import { pathOfText } from '../../core/values/path.ts';
import { asOfProperty, timeThen } from '../../core/operations/records/moment.ts';
import {
  defineOperation,
  type Call,
  type OperationResult,
} from '../../core/operations/operation.ts';
import type { SiteAccess } from '../rules/site-access.ts';
import {
  breadcrumbSite,
  clientOf,
  type PageParts,
  visitorAt,
} from '../rules/operations/page-lookup.ts';
import { parseOrigin, parseQueryText, requireBreadcrumbKey } from '../../core/operations/place.ts';
import { previewFor, previewOf, previewProperties } from '../rules/operations/preview.ts';
import { withReads } from '../../core/log/reads.ts';
import { storedRules } from '../rules/log/family.ts';

/** Characters of a token, which has 47. */
const tokenCharactersMax = 128;

const breadcrumb = {
  k: { type: 'string', description: 'The key of the breadcrumb.' },
  t: {
    type: 'string',
    nullable: true,
    maxLength: tokenCharactersMax,
    description: 'A token of breadcrumb.token: the breadcrumb resolves for its person.',
  },
  origin: { type: 'string', nullable: true, description: 'That of the request by default.' },
  query: { type: 'string', nullable: true },
} as const;

const breadcrumbInput = { type: 'object', required: ['k'], properties: breadcrumb } as const;

type BreadcrumbInput = StaticInput<typeof breadcrumbInput>;

const text = { type: 'string' } as const;

const resolution = {
  title: 'Resolution',
  type: 'object',
  required: ['status', 'id', 'matched'],
  properties: {
    status: { type: 'integer', description: 'HTTP status of the visit.' },
    target: { ...text, description: 'The target: an absolute URL, or a path on this site.' },
    content: { ...text, description: 'The content of a breadcrumb without a target.' },
    contenttype: { ...text, description: 'Media type of the content.' },
    id: { ...text, description: 'Id of the page rule that decided.' },
    matched: { ...text, description: 'The branch of it that decided: when[0], …, or default.' },
    headers: {
      type: 'object',
      additionalProperties: { oneOf: [text, { type: 'array', items: text }] },
      description: 'The header fields of the rule and its branches that a visit gets.',
    },
  },
} as const;

type Resolved = StaticOutput<typeof resolution>;

/**
 * userinterface.get_resolve: the result of a breadcrumb as data, for the caller or for a visitor
 * that the input describes.
 */
export const getResolve = defineOperation({
  name: 'svc1.userinterface.get_resolve',
  scope: 'render',
  effect: 'reads',
  inDrafts: true,
  summary: 'The result of a breadcrumb, for the caller or for a visitor that the input describes.',
  input: {
    type: 'object',
    required: ['k'],
    properties: { ...breadcrumb, ...previewProperties, as_of: asOfProperty },
  },
  output: resolution,
  failures: ['not_found', 'unprocessable'],
  run: (parts: PageParts & TokenParts) => async (v, call) => {
    const visit = visitOf(v, call);
    if (v.t !== undefined) {
      requirePresent(v);
      return withoutReferrer(() => {
        const holder = holderAt(parts, v.t, visit, call);
        const held = visitAs(visit, holder);
        return heldAnswer(siteWithin(parts, held, { call, holder }), held, holder);
      });
    }
    const site = breadcrumbSite(parts, { ...v, origin: visit.origin }, call);
    const nowMs = timeThen(parts.store, v.as_of);
    const previewed = await previewFor(v, call, { nowMs, locationOf: parts.locationOf });
    const visitor = nowMs === undefined ? visit.visitor : visit.visitor.with({ nowMs });
    return resolutionAnswer(site, { ...visit, visitor, ...previewed });
  },
});

/** The parts of userinterface.link.htm. */
interface LinkParts
  extends Omit<TokenParts, 'store'>, Pick<PageParts, 'site' | 'rowsFor' | 'pastRows'> {
  readonly store: PageParts['store'] & TokenParts['store'];
  /** Counts the visit of a browser. */
  readonly countVisit: CountVisit;
  /** The fields of the ini file for the answers of pages. */
  readonly pageHeaders: ResponseHeaders | undefined;
}

/**
 * userinterface.link.htm: the breadcrumb itself (docs/design/rendering.md#breadcrumbs): over HTTP a
 * redirect or a page, over a websocket the answer of get_resolve.
 */
export const linkHtm = defineOperation({
  name: 'svc1.userinterface.link.htm',
  scope: 'render',
  effect: 'reads',
  inDrafts: true,
  summary:
    'A breadcrumb: a redirect to its target, or its page. Callers that prefer JSON, and callers ' +
    'over the websocket, get the answer of get_resolve.',
  input: breadcrumbInput,
  output: resolution,
  query: {
    k: {
      ...text,
      minLength: 1,
      maxLength: breadcrumbKeyCharactersMax,
      description: 'The key. The breadcrumb decides whether its target gets the rest of the query.',
    },
    t: { ...breadcrumb.t, description: `${breadcrumb.t.description} No target gets it.` },
  },
  failures: ['not_found', 'unprocessable'],
  replies: {
    200: 'The breadcrumb shows a page, or its resolution as JSON.',
    302: 'The breadcrumb leads to the target in Location; the page rule may name another status.',
    default: 'Another status that the page rule sets, or a failure.',
  },
  run: (parts: LinkParts) => (v, call) =>
    v.t === undefined
      ? followLink(parts, v, call)
      : withoutReferrer(() => followLink(parts, v, call)),
});

function followLink(
  { countVisit, pageHeaders, ...parts }: LinkParts,
  v: BreadcrumbInput,
  call: Call,
): OperationResult<Resolved> | Promise<OperationResult<Resolved>> {
  const given = visitOf(v, call);
  const holder = holderAt(parts, v.t, given, call);
  const visit = visitAs(given, holder);
  const site = siteWithin(parts, visit, { call, holder });
  if (call.transport === 'websocket') return heldAnswer(site, visit, holder);
  // The browser follows it: an origin of the input must not choose the host that it gets to.
  const asked = { ...visit, host: authorityOf(call.origin), method: call.method ?? 'GET' };
  const answered = (reply: Reply): OperationResult<Resolved> => ({
    kind: 'reply',
    reply: holder === undefined ? reply : forOnePerson(reply),
  });
  const answer = (resolved: ResolvedBreadcrumb) => {
    if (call.method === 'GET') countVisit(resolved, visit);
    if (call.method !== 'HEAD' && !isPrefetch(prefetchPurpose(call.fields))) holder?.used();
    const page = whenReady(keyReply(resolved, { ...asked, origin: call.origin }), (reply) => {
      const { key } = asked;
      const path = pathOfText(key.startsWith('/') ? key : `/${key}`);
      const { address } = call.caller;
      return pageHeaders?.(reply, { ...asked, origin: call.origin, path, address }) ?? reply;
    });
    return whenReady(page, answered);
  };
  return whenReady(site.resolve(asked), answer);
}

/** An answer that a browser does not name to others, also if it fails. */
async function withoutReferrer<T>(answer: () => T | Promise<T>): Promise<T> {
  try {
    return await answer();
  } catch (thrown) {
    throw failureFrom(thrown).answeredWith(unsentReferrer);
  }
}

/** The visit of a breadcrumb by the caller, whom it may describe as another visitor. */
type ClientVisit = Parameters<SiteAccess['resolve']>[0];

/** The person of the token of a visit; undefined without one. Throws as holderOf. */
function holderAt(
  parts: TokenParts,
  token: string | undefined,
  { key: k, origin }: ClientVisit,
  { caller: { address } }: Call,
): TokenHolder | undefined {
  return token === undefined ? undefined : holderOf(parts, token, { k, origin, address });
}

/** The visit by the person of a token: no page and no rate learns who that is. */
function visitAs(visit: ClientVisit, holder: TokenHolder | undefined): ClientVisit {
  if (holder === undefined) return visit;
  const visitor = visit.visitor.with({ user: holder.user });
  return { ...visit, visitor, client: { ...visit.client, visitor } };
}

/** The site in which the caller and the person of a token resolve a breadcrumb. */
function siteWithin(
  parts: Pick<LinkParts, 'site' | 'store' | 'rowsFor' | 'pastRows'>,
  { key: k, origin }: ClientVisit,
  { call, holder }: { readonly call: Call; readonly holder: TokenHolder | undefined },
): SiteAccess {
  const { caller } = call;
  if (holder?.bounds === undefined) {
    return caller.bounds === undefined ? parts.site : breadcrumbSite(parts, { k, origin }, call);
  }
  // Who makes a token with a bound key must not see by it what that key does not see.
  const inside = rulesInside(parts.store.of(storedRules), holder.bounds);
  const store = { ...parts.store, of: withReads(parts.store, storedRules, inside) };
  const bounds = caller.bounds ?? holder.bounds;
  return breadcrumbSite(
    { ...parts, store },
    { k, origin },
    { ...call, caller: { ...caller, bounds } },
  );
}

/** Throws `invalid` for a token with another visitor or moment: it is for one person, and now. */
function requirePresent(v: object & { readonly as_of?: string }): void {
  const [field = v.as_of === undefined ? undefined : 'as_of'] = Object.keys(previewOf(v));
  if (field === undefined) return;
  throw new Failure('invalid', `A token says who visits, and when. Leave out ${field}.`, { field });
}

/** The answer of a visit that may be of the person of a token. */
async function heldAnswer(
  site: SiteAccess,
  visit: ClientVisit,
  holder: TokenHolder | undefined,
): Promise<OperationResult<Resolved>> {
  const answer = await resolutionAnswer(site, visit);
  if (holder === undefined) return answer;
  holder.used();
  return answer.kind === 'data' ? { ...answer, fields: unsentReferrer } : answer;
}

async function resolutionAnswer(
  site: SiteAccess,
  visit: ClientVisit,
): Promise<OperationResult<Resolved>> {
  const resolved = await site.resolve(visit);
  return { kind: 'data', data: await keyData(resolved, visit), caching: cachingFields(resolved) };
}

function visitOf({ k, origin, query }: BreadcrumbInput, call: Call): ClientVisit {
  requireBreadcrumbKey(k);
  const where = { origin: origin === undefined ? call.origin : parseOrigin(origin) };
  return {
    key: k,
    ...where,
    query: parseQueryText(query ?? ''),
    // A page rule may show the fields of the request, and send them elsewhere.
    fields: withoutOwnCookies(call.fields),
    visitor: visitorAt(call, where),
    client: clientOf(call, where),
  };
}
