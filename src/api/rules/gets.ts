import { decideRender, renderWhenOf } from '../../breadcrumbs/render-when.ts';
import type { Branch, Dependencies } from '../../breadcrumbs/when.ts';
import type { JSONSchemaType } from 'ajv';
import { parseQuery } from '../../http/query.ts';
import type { FieldList, Reply } from '../../http/reply.ts';
import type { ContentRequest, Fields } from '../../http/request.ts';
import type { Explanation } from '../../model/explanation.ts';
import { Failure } from '../../model/failure.ts';
import type { FoundRule, Resolution, Rule } from '../../model/rule.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { hasScope } from '../../model/key.ts';
import { needsUser, type Location, type Visitor } from '../../model/visitor.ts';
import { headerBlockBytesMax, headerFieldsMax } from '../../http/limits.ts';
import { servicePath } from '../../model/path.ts';
import { affectsWholeOrigin } from '../../proxy/response-fields.ts';
import { jsonDigest, preparedFor } from '../../model/prepared-json.ts';
import type { PastRules, Reads } from '../../store/store.ts';
import { getContentDescription, getDescription, getRenderDescription } from './gets-description.ts';
import { asOfProperty, rulesThen, timeThen } from '../records/moment.ts';
import type { Call, Handler, OperationResult } from '../operation.ts';
import { parsePlace, type Place } from './place.ts';
import { previewFor, previewProperties } from './preview.ts';
import { etagOfDigest, publicData, renderView, serverFields, type ViewConfig } from './record.ts';

/** A breadcrumb's key, and who follows it from where. */
export interface Crumb {
  readonly key: string;
  readonly origin: string;
  readonly query: string;
  readonly fields: Fields;
  readonly visitor: Visitor;
}

/** What a breadcrumb comes to, and what that depended on. */
interface Resolved extends Resolution {
  readonly dependencies: Dependencies;
  /** Stands for the answer where it is the same for all who come to it; else undefined. */
  readonly cacheKey: object | undefined;
}

/** What these operations ask of the site: the very functions that answer visitors. */
export interface SiteAccess {
  respond(request: ContentRequest): Reply | Promise<Reply>;
  /** The page rule that would answer if no file did; undefined when there is none. */
  findRule(asked: {
    readonly origin: string;
    readonly path: string;
    readonly fields: Fields;
  }): FoundRule | undefined;
  /** Fails with `not_found` for an unknown key, `unprocessable` for keys that lead in a circle. */
  resolve(asked: Crumb): Resolved | Promise<Resolved>;
  /** The HTTP answer to a visitor of a breadcrumb. */
  breadcrumb(resolved: Resolved, visit: Omit<Crumb, 'key'>): Reply;
  /** What get_resolve answers of a breadcrumb, and what it tells caches. */
  breadcrumbData(resolved: Resolved): { readonly data: Resolution; readonly caching: FieldList };
  /** How respond would answer, and why: reads only, and asks no other server. */
  explain(asked: Omit<ContentRequest, 'address' | 'body' | 'signal'>): Explanation;
  /** How a breadcrumb's key would be answered, and why. */
  explainKey(asked: Crumb): Explanation;
  /** The same site over page rules of another moment; files and sources stay those of now. */
  at(rules: PastRules): SiteAccess;
}

/** What the operations of the scope render stand on. */
export interface GetOperations {
  readonly site: SiteAccess;
  readonly store: Pick<Reads, 'seq' | 'seqAt' | 'at' | 'change' | 'rule'>;
  readonly view: ViewConfig;
  /** Where an address is. */
  readonly locationOf: (address: string) => Promise<Location>;
  /** Whether the ini file says that an origin leads to this server. */
  readonly namesOrigin: (origin: string) => boolean;
}

interface PlaceThen extends Place {
  as_of?: string;
}

interface RenderPlace extends Omit<PlaceThen, 'query'> {
  query?: string | Readonly<Record<string, string | readonly string[]>>;
}

const place = {
  type: 'object',
  required: ['origin', 'path'],
  properties: {
    origin: { type: 'string' },
    path: { type: 'string', description: 'As in a URL, or decoded; a query may follow.' },
    query: { type: 'string', nullable: true },
    as_of: asOfProperty,
  },
} as const;

const renderPlace = {
  type: 'object',
  required: ['origin', 'path'],
  properties: {
    ...place.properties,
    query: {
      description: 'The query as a text, or its parameters as get_render answers them.',
      oneOf: [
        { type: 'string', nullable: true },
        {
          type: 'object',
          additionalProperties: {
            oneOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }],
          },
        },
      ],
    },
    ...previewProperties,
  },
} as unknown as JSONSchemaType<RenderPlace>;

/** A query as the text of a URL. */
function queryText(query: RenderPlace['query']): string {
  if (typeof query === 'string') return query;
  const parameters = new URLSearchParams();
  for (const [name, values] of Object.entries(query ?? {})) {
    for (const value of [values].flat()) parameters.append(name, value);
  }
  return parameters.toString();
}

/** userinterface.get: the render-safe fields of the rule that wins for an origin and path. */
export function getRule({ view, ...parts }: GetOperations): Handler<PlaceThen> {
  return {
    ...getDescription,
    input: place,
    run: async (v, call) => {
      const where = contentPlace(v, view);
      const found = winner(siteThen(parts, v, call), where, call);
      const { rule } = found.stored;
      const rendered = await renderFor(found, { visitor: call.visitor, query: where.query });
      const { content, enginedata, ...shown } = renderView(found);
      const data = {
        ...shown,
        ...(content !== undefined && { content: preparedContent(rule) }),
        ...(enginedata !== undefined && { enginedata: preparedEnginedata(rendered.enginedata) }),
        ...publicServerFields(rule, view, call.origin),
      };
      const isForAll = call.caller.keyId === undefined;
      return renderAnswer(data, found, { isForAll, dependencies: rendered.dependencies });
    },
  };
}

/**
 * userinterface.get_render: what a generic page needs to render itself
 * (docs/design/rendering.md#generic-pages).
 */
export function getRender({ view, ...parts }: GetOperations): Handler<RenderPlace> {
  return {
    ...getRenderDescription,
    input: renderPlace,
    run: async (v, call) => {
      const nowMs = timeThen(parts.store, v.as_of);
      const previewed = await previewFor(v, call, { nowMs, locationOf: parts.locationOf });
      const { visitor } = previewed ?? call;
      await visitor.prepare(needsUser);
      const user = visitor.user();
      const where = contentPlace({ ...v, query: queryText(v.query) }, view);
      const fields = previewed?.fields ?? call.fields;
      const found = winner(siteThen(parts, v, call), where, { fields });
      const { stored, capture } = found;
      const { rule, seq } = stored;
      const hidden = rule.kind === 'content.fetch' || rule.kind === 'resolve';
      const rendered = await renderFor(found, { visitor, query: where.query });
      const data = {
        id: rule.id,
        seq,
        origin: where.origin,
        path: where.path,
        query: queryObject(where.query),
        capture: capture ?? null,
        kind: rule.kind,
        lang: rule.lang ?? null,
        engine: rule.engine ?? null,
        enginedata: hidden ? {} : preparedEnginedata(rendered.enginedata),
        enginereference: null,
        table: rule.table ?? null,
        meta: null,
        script: view.engines.find(({ name }) => name === rule.engine)?.script ?? null,
        ...publicServerFields(rule, view, call.origin),
        user: user ?? null,
        ...(previewed !== undefined && { matched: rendered.matched }),
      };
      const isForAll = call.caller.keyId === undefined && user === undefined;
      return renderAnswer(data, found, { isForAll, dependencies: rendered.dependencies });
    },
  };
}

/** What a rule shows to a visitor. */
interface Rendered {
  readonly enginedata: JsonObject;
  /** The branch of `enginedata.when` that holds, or `default`. */
  readonly matched: string;
  /** Undefined for a rule that shows the same to everybody. */
  readonly dependencies: Dependencies | undefined;
}

/**
 * The enginedata of a rule for a visitor, by the branches of its `when`
 * (docs/design/rendering.md#generic-pages).
 */
async function renderFor(
  { stored }: FoundRule,
  visit: { readonly visitor: Visitor; readonly query: string },
): Promise<Rendered> {
  const renderWhen = renderWhenOf(stored);
  if (renderWhen === undefined) {
    const { enginedata = noEnginedata } = stored.rule;
    return { enginedata, matched: 'default', dependencies: undefined };
  }
  const { dependencies } = renderWhen;
  if (dependencies.needs !== undefined) await visit.visitor.prepare(dependencies.needs);
  const branch: Branch<JsonObject> = decideRender(renderWhen, stored, visit);
  return { enginedata: branch.answer, matched: branch.name, dependencies };
}

const noEnginedata: JsonObject = {};

const preparedContent = preparedFor(({ content }: Rule) => content);
const preparedEnginedata = preparedFor(publicData);
const preparedSchema = preparedFor((schema: JsonObject) => schema);

/** As serverFields; the schema of a table may be large. */
function publicServerFields(...given: Parameters<typeof serverFields>): object {
  const { meta, ...others } = serverFields(...given);
  return { ...others, ...(isJsonObject(meta) && { meta: preparedSchema(meta) }) };
}

/** What all who are not known by key or name are answered with is prepared for the next of them. */
function renderAnswer(
  data: object,
  { variesByLanguage }: FoundRule,
  {
    isForAll,
    dependencies,
  }: { readonly isForAll: boolean; readonly dependencies: Dependencies | undefined },
): OperationResult {
  if (isForAll && dependencies === undefined) {
    return { kind: 'data', data, forAll: { variesByLanguage } };
  }
  const outcome = { kind: 'data', data, etag: etagOfDigest(jsonDigest(data)) } as const;
  if (dependencies === undefined) return outcome;
  const language = variesByLanguage ? ['Accept-Language'] : [];
  const vary = [...new Set(['apikey', ...language, ...dependencies.vary])].sort().join(', ');
  return { ...outcome, caching: ['Cache-Control', 'private, no-cache', 'Vary', vary] };
}

/**
 * userinterface.get_content: the page's own HTTP answer; over a websocket its packet
 * (docs/design/operations.md#one-definition).
 */
export function getContent({
  view,
  ...parts
}: GetOperations): Handler<PlaceThen & { headers?: object }> {
  return {
    ...getContentDescription,
    input: {
      type: 'object',
      required: ['origin', 'path'],
      properties: {
        ...place.properties,
        as_of: {
          ...asOfProperty,
          description:
            `${asOfProperty.description} Files are those of now; a page of another server was ` +
            'not kept, and is `unprocessable`.',
        },
        headers: { type: 'object', nullable: true, maxProperties: headerFieldsMax },
      },
    },
    run: async (v, call) => {
      const where = contentPlace(v, view);
      refuseServiceWorker(call);
      const asked = requestFields(v.headers ?? {});
      const reply = await siteThen(parts, v, call).respond({
        method: 'GET',
        ...where,
        fields: withVia(asked, call.fields.via),
        address: call.caller.address,
        visitor: visitorWith(asked, timeThen(parts.store, v.as_of), call),
        body: undefined,
        signal: call.signal(),
      });
      return { kind: 'reply', reply: where.origin === call.origin ? reply : sandboxed(reply) };
    },
  };
}

/**
 * A service worker may control what is in the folder of its script (Service Workers §Update): from
 * here, that would be operations, whichever page's script it is.
 */
function refuseServiceWorker({ fields }: Call): void {
  if (fields['service-worker'] === undefined) return;
  throw new Failure(
    'invalid',
    'A service worker is not loaded from here, where it could control operations. Load it from ' +
      "its page's own address.",
    { field: 'service-worker' },
  );
}

/**
 * A page of another origin, shown under this one, may do nothing in its name: an origin of its own
 * keeps the two apart (CSP 3, sandbox), and it says nothing of cookies and of the whole origin.
 */
function sandboxed(reply: Reply): Reply {
  const fields = reply.fields.filter((_, at) => {
    const name = reply.fields[at - (at % 2)]?.toLowerCase() ?? '';
    return name !== 'set-cookie' && !affectsWholeOrigin(name);
  });
  return { ...reply, fields: [...fields, 'Content-Security-Policy', 'sandbox'] };
}

/**
 * The site over the page rules of the moment that is asked for. The past is for callers who may
 * read: what was taken away from visitors stays away from them
 * (docs/design/operations.md#one-definition).
 */
export function siteThen(
  { site, store }: Pick<GetOperations, 'site' | 'store'>,
  { as_of: asOf }: { readonly as_of?: string },
  { caller }: Call,
): SiteAccess {
  const rules = rulesThen(store, asOf);
  if (rules === undefined) return site;
  if (hasScope(caller, 'read')) return site.at(rules);
  throw new Failure(
    caller.keyId === undefined ? 'unauthenticated' : 'forbidden',
    'To see the site as it was needs an API key with the scope read.',
    { field: 'as_of' },
  );
}

/**
 * The place that is asked for, which is one that visitors find content at: below `{base}/svc1` they
 * find Waymark's own, whatever page rules and files there are (docs/design/requests.md#precedence).
 * Throws `invalid`, and `not_found` there.
 */
function contentPlace(v: Place, { base }: ViewConfig): Required<Place> {
  const where = parsePlace(v);
  if (servicePath(where.path, base) === undefined) return where;
  throw new Failure('not_found', `${where.path} is Waymark's own: no page is shown there.`, {
    field: 'path',
  });
}

function winner(
  site: SiteAccess,
  where: Required<Place>,
  { fields }: Pick<Call, 'fields'>,
): FoundRule {
  const found = site.findRule({ ...where, fields });
  if (found === undefined) {
    throw new Failure('not_found', `No page rule answers ${where.origin}${where.path}.`);
  }
  return found;
}

/** The parameters of a query by name, in one pass: a caller may send thousands of names. */
function queryObject(query: string): Record<string, string | string[]> {
  const parameters = new Map<string, string | string[]>();
  for (const { name, value } of parseQuery(query)) {
    const earlier = parameters.get(name);
    if (earlier === undefined) parameters.set(name, value);
    else if (typeof earlier === 'string') parameters.set(name, [earlier, value]);
    else earlier.push(value);
  }
  return Object.fromEntries(parameters);
}

/** What a page may be asked with; what says who asks is the server's to say. */
const askable: ReadonlySet<string> = new Set([
  'accept',
  'accept-language',
  'cookie',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'range',
  'referer',
  'sec-ch-ua-form-factors',
  'sec-ch-ua-mobile',
  'sec-ch-ua-platform',
  'user-agent',
]);

/** What a browser says of its device besides the User-Agent. */
const hints = ['sec-ch-ua-mobile', 'sec-ch-ua-platform', 'sec-ch-ua-form-factors'] as const;

/** The way that a request has come: a page that is fetched from itself would have no end. */
function withVia(fields: Fields, via: string | undefined): Fields {
  if (via === undefined) return fields;
  return Object.assign(Object.create(null) as Record<string, string>, fields, { via });
}

/** The visitor that asks, with the fields that it wants a page requested with, at some time. */
function visitorWith(fields: Fields, nowMs: number | undefined, { visitor }: Call): Visitor {
  if (Object.keys(fields).length === 0 && nowMs === undefined) return visitor;
  // Hints of the caller's own browser would belie another User-Agent.
  const unsaid = fields['user-agent'] === undefined ? [] : hints;
  const others = Object.fromEntries(unsaid.map((name) => [name, undefined]));
  return visitor.with({ fields: { ...others, ...fields }, nowMs });
}

/**
 * Header fields that the caller wants the page requested with, as far as they can be asked for.
 * Throws `too_large` for more than a header section may have.
 */
function requestFields(headers: object): Fields {
  const fields = Object.create(null) as Record<string, string>;
  let bytes = 0;
  for (const [name, value] of Object.entries(headers) as [string, unknown][]) {
    const lower = name.toLowerCase();
    if (!askable.has(lower) || typeof value !== 'string') continue;
    bytes += lower.length + value.length;
    if (bytes > headerBlockBytesMax) {
      throw new Failure('too_large', `headers may have ${headerBlockBytesMax} bytes together.`, {
        field: 'headers',
      });
    }
    if (/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) fields[lower] = value;
  }
  return fields;
}
