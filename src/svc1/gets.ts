import { canonicalPath, encodeNonAscii } from '../model/path.ts';
import type { Reply } from '../http/reply.ts';
import type { ContentRequest, Fields } from '../http/request.ts';
import { Failure } from '../model/failure.ts';
import type { FoundRule, Resolution } from '../model/found.ts';
import { headerFieldsMax } from '../model/limits.ts';
import type { PastRules, Reads } from '../store/store.ts';
import { isBreadcrumbKey, parseRuleOrigin } from './fields.ts';
import { asOfProperty, rulesThen } from './moment.ts';
import type { Call, Handler } from './operation.ts';
import { etagOf, publicData, renderView, serverFields, type ViewConfig } from './record.ts';

/** What these operations ask of the site: the very functions that answer visitors. */
export interface SiteAccess {
  respond(request: ContentRequest): Promise<Reply>;
  /** The page rule that would answer if no file did; undefined when there is none. */
  findRule(asked: {
    readonly origin: string;
    readonly path: string;
    readonly fields: Fields;
  }): FoundRule | undefined;
  /** Throws `not_found` for an unknown key, `unprocessable` for keys that lead in a circle. */
  resolve(asked: {
    readonly key: string;
    readonly origin: string;
    readonly query: string;
  }): Resolution;
  /** The HTTP answer to a visitor of a breadcrumb. */
  breadcrumb(resolution: Resolution): Reply;
  /** The same site over page rules of another moment; files and sources stay those of now. */
  at(rules: PastRules): SiteAccess;
}

/** What the operations of the scope render stand on. */
export interface GetOperations {
  readonly site: SiteAccess;
  readonly store: Pick<Reads, 'seq' | 'seqAt' | 'at'>;
  readonly view: ViewConfig;
}

interface Place {
  origin: string;
  path: string;
  query?: string;
  as_of?: string;
}

const place = {
  type: 'object',
  required: ['origin', 'path'],
  properties: {
    origin: { type: 'string' },
    path: { type: 'string' },
    query: { type: 'string', nullable: true },
    as_of: asOfProperty,
  },
} as const;

/** userinterface.get: the render-safe fields of the rule that wins for an origin and path. */
export function getRule({ view, ...parts }: GetOperations): Handler<Place> {
  return {
    input: place,
    run: (v, call) => {
      const found = winner(siteThen(parts, v), parsePlace(v), call);
      const data = { ...renderView(found), ...serverFields(found.stored.rule, view, call.origin) };
      return { kind: 'data', data, etag: etagOf(data) };
    },
  };
}

/** userinterface.get_render: what a generic page needs to render itself (contract §6). */
export function getRender({ view, ...parts }: GetOperations): Handler<Place> {
  return {
    input: place,
    run: (v, call) => {
      const where = parsePlace(v);
      const { stored, capture } = winner(siteThen(parts, v), where, call);
      const { rule, seq } = stored;
      const hidden = rule.kind === 'content.fetch' || rule.kind === 'resolve';
      const data = {
        id: rule.id,
        seq,
        origin: where.origin,
        path: where.path,
        query: parseQuery(where.query),
        capture: capture ?? null,
        kind: rule.kind,
        lang: rule.lang ?? null,
        engine: rule.engine ?? null,
        enginedata: hidden ? {} : publicData(rule.enginedata ?? {}),
        table: rule.table ?? null,
        script: view.engines.find(({ name }) => name === rule.engine)?.script ?? null,
        ...serverFields(rule, view, call.origin),
        user: call.caller.user ?? null,
      };
      return { kind: 'data', data, etag: etagOf(data) };
    },
  };
}

/**
 * userinterface.get_content: the page's own HTTP answer; over a websocket its packet (contract §5).
 */
export function getContent(parts: GetOperations): Handler<Place & { headers?: object }> {
  return {
    input: {
      type: 'object',
      required: ['origin', 'path'],
      properties: {
        ...place.properties,
        headers: { type: 'object', nullable: true, maxProperties: headerFieldsMax },
      },
    },
    run: async (v, call) => ({
      kind: 'reply',
      reply: await siteThen(parts, v).respond({
        method: 'GET',
        ...parsePlace(v),
        fields: requestFields(v.headers ?? {}),
        address: call.caller.address,
        user: call.caller.user,
        body: undefined,
        signal: call.signal,
      }),
    }),
  };
}

interface Breadcrumb {
  k: string;
  origin?: string;
  query?: string;
  as_of?: string;
}

const breadcrumb = {
  type: 'object',
  required: ['k'],
  properties: {
    k: { type: 'string' },
    origin: { type: 'string', nullable: true },
    query: { type: 'string', nullable: true },
  },
} as const;

/** userinterface.get_resolve: what a breadcrumb comes to, as data. */
export function getResolve(parts: GetOperations): Handler<Breadcrumb> {
  return {
    input: {
      type: 'object',
      required: ['k'],
      properties: { ...breadcrumb.properties, as_of: asOfProperty },
    },
    run: (v, call) => {
      const site = siteThen(parts, v);
      const { id, status, target, content, contenttype, matched } = resolveKey(site, v, call);
      return {
        kind: 'data',
        data: { status, target, content, contenttype, id, matched },
      };
    },
  };
}

/** userinterface.link.htm: the breadcrumb itself, a redirect or a page (seed 4.2). */
export function linkHtm({ site }: GetOperations): Handler<Omit<Breadcrumb, 'as_of'>> {
  return {
    input: breadcrumb,
    run: (v, call) => ({
      kind: 'reply',
      reply: site.breadcrumb(resolveKey(site, v, call)),
    }),
  };
}

/** The site over the page rules of the moment that is asked for. */
function siteThen(
  { site, store }: Pick<GetOperations, 'site' | 'store'>,
  { as_of: asOf }: { readonly as_of?: string },
): SiteAccess {
  const rules = rulesThen(store, asOf);
  return rules === undefined ? site : site.at(rules);
}

function resolveKey(site: SiteAccess, { k, origin, query }: Breadcrumb, call: Call): Resolution {
  if (!isBreadcrumbKey(k)) {
    throw new Failure('invalid', 'k must have 1 to 512 characters, none a control character.', {
      field: 'k',
    });
  }
  return site.resolve({
    key: k,
    origin: parseOrigin(origin ?? call.origin),
    query: query ?? '',
  });
}

function winner(site: SiteAccess, where: Required<Omit<Place, 'as_of'>>, call: Call): FoundRule {
  const found = site.findRule({ ...where, fields: call.fields });
  if (found === undefined) {
    throw new Failure('not_found', `No page rule answers ${where.origin}${where.path}.`);
  }
  return found;
}

/**
 * The origin and path of a visible URL in canonical form; the path is written as in a URL, or
 * decoded already.
 */
function parsePlace({ origin, path, query = '' }: Place): Required<Omit<Place, 'as_of'>> {
  const mark = path.indexOf('?');
  const pathOnly = mark === -1 ? path : path.slice(0, mark);
  const canonical = canonicalPath(encodeNonAscii(pathOnly));
  if (canonical === undefined) {
    throw new Failure(
      'invalid',
      'path is not the path of a URL: /like/this, no . or .. segments.',
      {
        field: 'path',
      },
    );
  }
  const ownQuery = mark === -1 ? '' : path.slice(mark + 1);
  return {
    origin: parseOrigin(origin),
    path: canonical,
    query: [ownQuery, query.replace(/^\?/, '')].filter((part) => part !== '').join('&'),
  };
}

function parseOrigin(text: string): string {
  const origin = parseRuleOrigin(text);
  if (origin === undefined || origin === '*') {
    throw new Failure('invalid', 'origin must be scheme://host[:port], with http or https.', {
      field: 'origin',
    });
  }
  return origin;
}

function parseQuery(query: string): Record<string, string | string[]> {
  const parameters = new URLSearchParams(query);
  return Object.fromEntries(
    [...new Set(parameters.keys())].map((name) => {
      const [first = '', ...others] = parameters.getAll(name);
      return [name, others.length === 0 ? first : [first, ...others]];
    }),
  );
}

/** Header fields that the caller wants the page requested with; only text counts, the key never. */
function requestFields(headers: object): Fields {
  const fields = Object.create(null) as Record<string, string>;
  for (const [name, value] of Object.entries(headers) as [string, unknown][]) {
    const lower = name.toLowerCase();
    const usable = /^[a-z0-9!#$%&'*+.^_`|~-]+$/.test(lower) && lower !== 'apikey';
    if (usable && typeof value === 'string' && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
      fields[lower] = value;
    }
  }
  return fields;
}
