import type { Reply } from '../../../core/http/reply.ts';
import { addressProblem } from '../../../core/outbound/address.ts';
import { unknownAddress } from '../../../core/values/network/peer.ts';
import type { Fields } from '../../../core/http/request.ts';
import { Failure, failureFrom } from '../../../core/values/failure.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import { headerBlockBytesMax, headerFieldsMax } from '../../../core/http/limits.ts';
import type { Visitor } from '../../../core/http/visitor.ts';
import type { ResponseHeaders } from '../../headers/response-headers.ts';
import type { SiteAccess } from '../site-access.ts';
import { affectsWholeOrigin } from '../../proxy/response-fields.ts';
import { asOfProperty, timeThen } from '../../../core/operations/records/moment.ts';
import { defineOperation, type Call } from '../../../core/operations/operation.ts';
import { previewFor, previewProperties } from './preview.ts';
import {
  clientOf,
  contentPlace,
  placeInput,
  replyInside,
  siteFor,
  visitorAt,
  type PageParts,
} from './page-lookup.ts';

const text = { type: 'string' } as const;

/** An HTTP response over the websocket; server/websocket/packet.ts makes it. */
export const contentPacket: JsonObject = {
  title: 'ContentPacket',
  type: 'object',
  required: ['status', 'headers', 'contenttype', 'source'],
  properties: {
    status: { type: 'integer' },
    headers: {
      type: 'object',
      additionalProperties: text,
      description: 'Header fields by their lower-case names.',
    },
    contenttype: { type: ['string', 'null'] },
    content: { ...text, description: 'The content if it is text in UTF-8.' },
    content_base64: { ...text, description: 'The content if it is not.' },
    source: { ...text, description: 'The source of the page: disk:<name>, rule:<id> or none.' },
  },
};

/**
 * userinterface.get_content: over HTTP the response of the page itself, over a websocket a packet
 * (docs/design/operations.md#one-definition).
 */
export const getContent = defineOperation({
  name: 'svc1.userinterface.get_content',
  scope: 'render',
  effect: 'reads',
  inDrafts: true,
  summary:
    'The page at an origin and path: over HTTP its own response, over the websocket a packet.',
  input: {
    type: 'object',
    required: ['origin', 'path'],
    properties: {
      ...placeInput.properties,
      ...previewProperties,
      as_of: {
        ...asOfProperty,
        description:
          `${asOfProperty.description} Files are those of now. A page of another server has no ` +
          'past: the answer is `unprocessable`.',
      },
      headers: {
        type: 'object',
        nullable: true,
        maxProperties: headerFieldsMax,
        description:
          'Header fields of the request. They describe the visitor, unless other fields do. Over ' +
          'HTTP, Accept-Language, and of a GET the conditions and Range, are those of the HTTP ' +
          'request, unless they are given here.',
      },
    },
  },
  output: contentPacket,
  failures: ['not_found', 'unprocessable', 'bad_gateway', 'gateway_timeout'],
  replies: {
    200: 'The page: its own header fields and content.',
    default: 'The page\u2019s own response with another status, or a failure.',
  },
  run:
    ({ view, ...parts }: ContentParts) =>
    async (v, call) => {
      requireNamedOrigin(call, parts.config.auth.corsOrigins);
      const where = contentPlace(v, view, call.caller);
      const { via } = call.fields;
      const nowMs = timeThen(parts.store, v.as_of);
      const headers = requestFields(v.headers ?? {});
      const previewed = await previewFor(v, call, { nowMs, locationOf: parts.locationOf });
      const sent = withFields(previewed?.fields ?? ownFields(call), headers);
      const shownSite = siteFor(parts, v, call);
      const request = {
        ...where,
        // A page that requests itself is recognised as a loop.
        fields: via === undefined ? sent : withFields(sent, { via }),
        address: call.caller.address,
        visitor: previewed?.visitor ?? visitorWith(headers, nowMs, visitorAt(call, where)),
      };
      const asked = {
        ...{ ...request, method: 'GET', body: undefined },
        ...{ client: clientOf(call, where), signal: call.signal() },
      };
      const answer = Promise.try(() => shownSite.respond(asked));
      const then = { reply: answer, where, asOf: v.as_of };
      const made = await replyInside(parts, then, call.caller).catch((thrown: unknown) => {
        const failure = failureFrom(thrown);
        if (failure.code !== 'not_found') throw thrown;
        return parts.notFoundPage(shownSite, failure, request);
      });
      const changed = (await parts.pageHeaders?.(made, asked)) ?? made;
      const reply = (await shownSite.limited(asked, changed)) ?? changed;
      const isForAll = previewed === undefined && v.as_of === undefined;
      const isStored = isForAll || call.method === 'POST';
      const shown = isStored ? reply : notStored(reply);
      return { kind: 'reply', reply: where.origin === call.origin ? shown : sandboxed(shown) };
    },
});

/** The parts that get_content needs. */
interface ContentParts extends PageParts {
  readonly config: { readonly auth: { readonly corsOrigins: readonly string[] } };
  /** The fields of the ini file for the answers of pages. */
  readonly pageHeaders: ResponseHeaders | undefined;
  /** The page that a visitor gets where nothing answers: that of the site, if it has one. */
  readonly notFoundPage: (
    site: SiteAccess,
    failure: Failure,
    request: Parameters<SiteAccess['errorPage']>[1],
  ) => Promise<Reply>;
}

/**
 * Refuses a page of another origin whose visitor is in a private network, unless `cors_origins`
 * names it: files and applications there are often for that network, and only the browser keeps
 * other pages from reading them, which `*` would end.
 */
function requireNamedOrigin({ fields, origin, caller }: Call, named: readonly string[]): void {
  const from = fields.origin;
  const isOther = from !== undefined && from !== origin && caller.keyId === undefined;
  if (!isOther || named.includes(from) || caller.address === unknownAddress) return;
  if (addressProblem(caller.address, []) === undefined) return;
  throw new Failure(
    'forbidden',
    'A page of another origin reads no page from within a private network: name its origin in ' +
      '[auth] cors_origins.',
  );
}

/**
 * The fields of a caller's own request that a page heeds: its language, and of a GET over HTTP what
 * its answer depends on. Cookies are for the site that has set them.
 */
function ownFields({ fields, transport, method }: Call): Fields {
  const names = transport === 'http' && method !== 'POST' ? requestOwn : languageOnly;
  return Object.fromEntries(
    names.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]])),
  );
}

const languageOnly = ['accept-language'] as const;
const requestOwn = [
  ...languageOnly,
  ...['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'],
  ...['if-range', 'range'],
] as const;

/**
 * A page of another origin gets an opaque origin (CSP 3, sandbox), sets no cookies and no policies
 * of this origin: otherwise it could act in the name of this one.
 */
function sandboxed(reply: Reply): Reply {
  const fields = reply.fields.filter((_, at) => {
    const name = reply.fields[at - (at % 2)]?.toLowerCase() ?? '';
    return name !== 'set-cookie' && !affectsWholeOrigin(name);
  });
  return { ...reply, fields: [...fields, 'Content-Security-Policy', 'sandbox'] };
}

/**
 * What only callers with the scope read may see, for no cache: a cache does not know that `apikey`
 * identifies a caller. It stores no response to a POST.
 */
function notStored(reply: Reply): Reply {
  const fields = reply.fields.filter((_, at) => {
    const name = reply.fields[at - (at % 2)]?.toLowerCase() ?? '';
    return name !== 'cache-control' && name !== 'expires';
  });
  return { ...reply, fields: [...fields, 'Cache-Control', 'no-store'] };
}

/** Fields that a caller may set; the server sets those that identify the client. */
const allowed: ReadonlySet<string> = new Set([
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

/** Client hints, which describe a device besides the User-Agent. */
const hints = ['sec-ch-ua-mobile', 'sec-ch-ua-platform', 'sec-ch-ua-form-factors'] as const;

function withFields(fields: Fields, more: Fields): Fields {
  return Object.assign(Object.create(null) as Record<string, string>, fields, more);
}

/** The caller as a visitor with other fields, at a time. */
function visitorWith(fields: Fields, nowMs: number | undefined, visitor: Visitor): Visitor {
  if (Object.keys(fields).length === 0 && nowMs === undefined) return visitor;
  // The hints of the caller's own browser would contradict another User-Agent.
  const removed = fields['user-agent'] === undefined ? [] : hints;
  const others = Object.fromEntries(removed.map((name) => [name, undefined]));
  return visitor.with({ fields: { ...others, ...fields }, nowMs });
}

/**
 * The header fields of an input that a caller may set. Throws `too_large` if they exceed the limit
 * of a header section.
 */
function requestFields(headers: object): Fields {
  const fields = Object.create(null) as Record<string, string>;
  let bytes = 0;
  for (const [name, value] of Object.entries(headers) as [string, unknown][]) {
    const lower = name.toLowerCase();
    if (!allowed.has(lower) || typeof value !== 'string') continue;
    bytes += lower.length + value.length;
    if (bytes > headerBlockBytesMax) {
      throw new Failure(
        'too_large',
        `headers has more than ${headerBlockBytesMax} bytes, the limit for all together.`,
        {
          field: 'headers',
        },
      );
    }
    if (/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) fields[lower] = value;
  }
  return fields;
}
