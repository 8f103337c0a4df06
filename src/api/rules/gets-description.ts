import type { JsonObject } from '../../model/json.ts';
import { breadcrumbKeyCharactersMax } from '../../model/limits.ts';
import { ruleKinds } from '../../model/rule.ts';
import type { Description } from '../operation.ts';
import { publicRule } from './record-schema.ts';

const text = { type: 'string' } as const;
const textOrNull = { type: ['string', 'null'] } as const;
const anyObject = { type: 'object', additionalProperties: true } as const;

/** What the documents say of userinterface.get. */
export const getDescription: Description = {
  summary: 'The page rule that answers an origin and path, as far as a running page may see it.',
  output: publicRule,
  etag: true,
  failures: ['not_found'],
};

/** What the documents say of userinterface.get_render. */
export const getRenderDescription: Description = {
  summary: 'What a generic page needs to render itself for an origin, path and query.',
  output: {
    title: 'RenderInformation',
    type: 'object',
    required: [
      ...['id', 'seq', 'origin', 'path', 'query', 'capture', 'kind', 'lang', 'engine'],
      ...['enginedata', 'enginereference', 'table', 'meta', 'script', 'user'],
    ],
    properties: {
      id: text,
      seq: { type: 'integer' },
      origin: { ...text, description: 'The origin that was asked for, in canonical form.' },
      path: { ...text, description: 'The path that was asked for, in canonical form.' },
      query: {
        type: 'object',
        additionalProperties: { oneOf: [text, { type: 'array', items: text }] },
        description: 'The parameters of the query; a list where one was given more than once.',
      },
      capture: { ...textOrNull, description: 'What the * of the rule\u2019s path stands for.' },
      kind: { ...text, enum: ruleKinds },
      lang: textOrNull,
      engine: textOrNull,
      enginedata: anyObject,
      enginereference: {
        ...textOrNull,
        description: 'URL of the documentation of the engine.',
      },
      table: textOrNull,
      meta: {
        type: ['object', 'null'],
        additionalProperties: true,
        description: 'JSON Schema of a row of the table; null for a rule without one.',
      },
      matched: {
        ...text,
        description: 'The branch of enginedata.when that holds; in previews as another visitor.',
      },
      script: { ...textOrNull, description: 'The script of an engine of the ini file.' },
      user: {
        type: ['object', 'null'],
        required: ['name', 'roles'],
        properties: { name: text, roles: { type: 'array', items: text } },
        description: 'The signed-in user.',
      },
    },
  },
  etag: true,
  failures: ['not_found'],
};

/** An HTTP answer as a websocket carries it; server/packet.ts makes it. */
const contentPacket: JsonObject = {
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
    contenttype: textOrNull,
    content: { ...text, description: 'The content where it is text in UTF-8.' },
    content_base64: { ...text, description: 'The content where it is not.' },
    source: { ...text, description: 'Who answered: disk:<name>, rule:<id> or none.' },
  },
};

/** What the documents say of userinterface.get_content. */
export const getContentDescription: Description = {
  summary: 'The page at an origin and path: over HTTP its own answer, over the websocket a packet.',
  output: contentPacket,
  failures: ['not_found', 'unprocessable', 'bad_gateway', 'gateway_timeout'],
  replies: {
    200: 'The page: its own header fields and content.',
    default: 'The page\u2019s own answer of any other status, or a failure.',
  },
};

const status = { type: 'integer', description: 'HTTP status of the visit.' } as const;

const resolution: JsonObject = {
  title: 'Resolution',
  type: 'object',
  required: ['status', 'id', 'matched'],
  properties: {
    status,
    target: { ...text, description: 'Where it leads: an absolute URL, or a path on this site.' },
    content: { ...text, description: 'What it shows, where it leads nowhere.' },
    contenttype: { ...text, description: 'Media type of that.' },
    id: { ...text, description: 'Id of the page rule that decided.' },
    matched: { ...text, description: 'Which branch of it decided: when[0] and so on, or default.' },
  },
};

/** What the documents say of userinterface.get_resolve. */
export const getResolveDescription: Description = {
  summary: 'What a breadcrumb comes to, for the caller or for a visitor that it describes.',
  output: resolution,
  failures: ['not_found', 'unprocessable'],
};

/** What the documents say of userinterface.link.htm. */
export const linkDescription: Description = {
  summary:
    'A breadcrumb: a redirect to its target, or the page that it shows; what get_resolve answers ' +
    'to callers that prefer JSON, and over the websocket.',
  output: resolution,
  query: {
    k: {
      ...text,
      minLength: 1,
      maxLength: breadcrumbKeyCharactersMax,
      description: 'The key. The rest of the query is passed on where the breadcrumb says so.',
    },
  },
  failures: ['not_found', 'unprocessable'],
  replies: {
    200: 'The breadcrumb shows a page, or its resolution as JSON.',
    302: 'The breadcrumb leads to the target in Location; the page rule may name another status.',
    default: 'Any other answer that the page rule asks for, or a failure.',
  },
};
