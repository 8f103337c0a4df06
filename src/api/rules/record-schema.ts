import type { JsonObject } from '../../model/json.ts';
import { vkCharactersMax } from '../limits.ts';
import {
  breadcrumbKeyCharactersMax,
  originBytesMax,
  tableCharactersMax,
} from '../../model/limits.ts';
import { ruleKinds, type Rule } from '../../model/rule.ts';
import { problemsMember } from '../problems.ts';

const text = { type: 'string' } as const;
const anyObject = { type: 'object', additionalProperties: true } as const;

/** The fields of a page rule that a caller writes (docs/design/page-rules.md#fields). */
const writable: Readonly<Record<keyof Omit<Rule, 'id' | '_unknowns_'>, JsonObject>> = {
  origin: {
    ...text,
    maxLength: originBytesMax,
    description: 'scheme://host[:port], or * for every origin, which is the default.',
  },
  path: {
    ...text,
    description:
      'The path of the URL, exact or with one * at its end; of the kind resolve any key of 1 to ' +
      `${breadcrumbKeyCharactersMax} characters.`,
  },
  kind: { ...text, enum: ruleKinds, description: 'What the rule does with its path.' },
  table: {
    ...text,
    minLength: 1,
    maxLength: tableCharactersMax,
    description: 'The table that the page deals with.',
  },
  designed_at: {
    ...text,
    format: 'date-time',
    description: 'When it was designed, kept as UTC; in matching the newer one wins.',
  },
  lang: { ...text, description: 'A BCP 47 language tag.' },
  content: {
    description: 'The body of the page.',
    oneOf: [
      text,
      {
        type: 'object',
        required: ['base64'],
        properties: { base64: { ...text, description: 'Bytes in base64.' } },
      },
    ],
  },
  contenttype: {
    ...text,
    description:
      'Its media type; text/html; charset=utf-8 by default. ' +
      'A text is sent as UTF-8, whatever charset it names.',
  },
  httpresponse: { type: 'integer', minimum: 200, maximum: 599, description: 'HTTP status.' },
  engine: { ...text, description: 'The engine that renders the page in the browser.' },
  enginedata: {
    ...anyObject,
    description: 'What the kind or the engine needs; enginereference documents that of an engine.',
  },
  enginecomments: text,
  rve: { type: 'number', description: 'In matching the higher one wins.' },
};

const unknowns = {
  ...anyObject,
  description: 'Fields that were sent and are not valid, kept until they become so.',
} as const;

/** The valid fields of a new page rule. Others are kept in `_unknowns_`. */
export const newRule: JsonObject = {
  title: 'NewPageRule',
  type: 'object',
  required: ['path'],
  properties: { ...writable, _unknowns_: unknowns },
};

/** The valid fields of an edit of a page rule: null removes one. */
export const ruleEdit: JsonObject = {
  title: 'PageRuleEdit',
  type: 'object',
  required: ['id'],
  properties: {
    id: text,
    if_seq: { type: 'integer', description: 'The seq at which the record still has to be.' },
    ...Object.fromEntries(
      Object.entries({ ...writable, _unknowns_: unknowns }).map(([name, schema]) => [
        name,
        name === 'kind' || name === 'path' ? schema : { oneOf: [schema, { type: 'null' }] },
      ]),
    ),
  },
};

const serverOwn: JsonObject = {
  enginereference: { ...text, description: 'URL of the documentation of its engine.' },
  meta: { ...anyObject, description: 'JSON Schema of a row of its table.' },
  seq: { type: 'integer', description: 'Version of the record, for if_seq and If-Match.' },
};

const { content: _content, ...withoutContent } = writable;
const { enginecomments: _comments, ...public_ } = writable;

/** A page rule as read, insert and edit show it. */
export const pageRule = record('PageRule', { ...writable, _unknowns_: unknowns });

/** The answer of insert and edit. */
export const writtenRule = record(
  'WrittenPageRule',
  {
    ...writable,
    _unknowns_: unknowns,
    unknowns: {
      type: 'array',
      items: text,
      description: 'Names of fields sent now that are not valid, and were kept in _unknowns_.',
    },
    problems: problemsMember,
  },
  ['unknowns', 'problems'],
);

/** A page rule in a list. */
export const listedRule = record('ListedPageRule', {
  ...withoutContent,
  _unknowns_: unknowns,
  content_bytes: { type: 'integer', description: 'Length of its content, which read shows.' },
});

/** A page rule as a running page may see it. */
export const publicRule = record('PublicPageRule', {
  ...public_,
  capture: { ...text, description: 'What the * of its path stands for.' },
});

/**
 * The idempotency key in the envelope of a request
 * (docs/design/history.md#idempotency-and-concurrency).
 */
export const vkMember: JsonObject = {
  ...text,
  minLength: 1,
  maxLength: vkCharactersMax,
  description: 'Idempotency key: the same request under it is answered again, not done again.',
};

/** What a write is to do with a mistake, in the envelope of a request (RFC 7240 §4.4). */
export const preferMember: JsonObject = {
  ...text,
  description: 'handling=strict refuses a write with a field that is not valid, as Prefer does.',
};

function record(title: string, fields: JsonObject, required: readonly string[] = []): JsonObject {
  return {
    title,
    type: 'object',
    required: ['id', 'seq', 'origin', 'path', 'kind', ...required],
    properties: {
      id: { ...text, description: 'UUIDv7, given by the server.' },
      ...fields,
      ...serverOwn,
    },
  };
}
