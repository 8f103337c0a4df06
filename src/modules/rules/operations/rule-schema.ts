import { originsMax } from './fields.ts';
import { assetNameBytesMax } from '../asset-name.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import {
  breadcrumbKeyCharactersMax,
  originBytesMax,
  tableCharactersMax,
} from '../../../core/values/limits.ts';
import { ruleKinds, type Rule } from '../rule.ts';
import { customHeadersMax } from '../../../core/config/limits.ts';
import { momentCharactersMax } from '../../drafts/operations/limits.ts';
import type { RecordSchema } from '../../../core/operations/records/schema.ts';

const text = { type: 'string' } as const;
const anyObject = { type: 'object', additionalProperties: true } as const;

function limitMeans(when: string): string {
  return (
    `A moment: the rule answers ${when}. A date-time with an offset, or the local time of a time ` +
    'zone, such as 2026-12-01T08:00[Europe/Berlin]; stored as UTC, with the time zone.'
  );
}

/** The fields of a page rule that callers write (docs/design/page-rules.md#fields). */
const fields: Readonly<Record<keyof Omit<Rule, 'id' | '_unknowns_'>, JsonObject>> = {
  origin: {
    ...text,
    maxLength: originsMax * (originBytesMax + 1),
    description:
      'scheme://host[:port]; https://*.example.com for all subdomains; several of these with a ' +
      'space between them; or * for every origin, which is the default.',
  },
  path: {
    ...text,
    description:
      'The path of the URL, exact, or with one * at its end or in place of a segment, such as ' +
      '/shop/*/edit; of the kind resolve any key of 1 to ' +
      `${breadcrumbKeyCharactersMax} characters.`,
  },
  kind: { ...text, enum: ruleKinds, description: 'How the rule answers requests for its path.' },
  table: {
    ...text,
    minLength: 1,
    maxLength: tableCharactersMax,
    description: 'The table whose records the page shows or changes.',
  },
  designed_at: {
    ...text,
    format: 'date-time',
    description: 'When it was designed, stored as UTC; in matching the newer one wins.',
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
  asset: {
    ...text,
    maxLength: assetNameBytesMax,
    description: 'The name of an asset, whose file is the body of a page without content.',
  },
  contenttype: {
    ...text,
    description:
      'Its media type; by default text/html; charset=utf-8, or that of its asset. ' +
      'A text is sent as UTF-8, whatever charset it names.',
  },
  httpresponse: { type: 'integer', minimum: 200, maximum: 599, description: 'HTTP status.' },
  headers: {
    type: 'object',
    maxProperties: customHeadersMax,
    additionalProperties: {
      oneOf: [text, { type: 'array', items: text, minItems: 1, maxItems: customHeadersMax }],
    },
    description:
      'Header fields of its answers, with variables such as ${path}: a text replaces the field, ' +
      'an empty one removes it, and a name that ends with [] adds one, such as "Link[]".',
  },
  engine: { ...text, description: 'The engine that renders the page in the browser.' },
  enginedata: {
    ...anyObject,
    description: 'The settings of the kind or engine; enginereference documents an engine.',
  },
  enginecomments: { ...text, description: 'A note for the people who edit the rule.' },
  rve: { type: 'number', description: 'In matching the higher one wins.' },
  access: {
    ...text,
    maxLength: 64,
    description:
      'The name of a section [access.<name>] of the ini file, which decides who gets its answers.',
  },
  from: { ...text, maxLength: momentCharactersMax, description: limitMeans('from it on') },
  until: { ...text, maxLength: momentCharactersMax, description: limitMeans('only before it') },
};

const server = {
  enginereference: { ...text, description: 'URL of the documentation of its engine.' },
  meta: { ...anyObject, description: 'JSON Schema of a row of its table.' },
} as const;

const always = ['origin', 'path', 'kind'];

/** The schemas of page rules. */
export const ruleSchema: RecordSchema = {
  title: 'PageRule',
  fields,
  required: ['path'],
  lasting: ['kind', 'path'],
  always,
  server,
  listed: {
    omitted: ['content'],
    added: {
      content_bytes: { type: 'integer', description: 'Length of its content, which read shows.' },
    },
  },
};

const { enginecomments: _comments, access: _access, ...publicFields } = fields;

/** A page rule as a running page sees it. */
export const publicRule: JsonObject = {
  title: 'PublicPageRule',
  type: 'object',
  required: ['id', 'seq', ...always],
  properties: {
    id: text,
    ...publicFields,
    capture: { ...text, description: 'The part of the path that the * of the rule matches.' },
    ...server,
    seq: { type: 'integer', description: 'Version of the record.' },
  },
};
