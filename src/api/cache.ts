import type { JSONSchemaType } from 'ajv';
import { Failure } from '../model/failure.ts';
import type { JsonObject } from '../model/json.ts';
import type { CacheListRow, CacheAdmin, CachePurge } from '../model/cache-admin.ts';
import { listRowsDefault, listRowsMax } from './limits.ts';
import { urlOf } from '../model/path.ts';
import type { Handler } from './operation.ts';
import { parseUrl } from './rules/place.ts';

/** What the operations on kept answers of other servers stand on. */
export interface CacheOperations {
  readonly kept: CacheAdmin;
}

interface PurgeInput {
  url?: string;
  prefix?: string;
  rule?: string;
  all?: boolean;
}

interface ListInput {
  prefix?: string;
  rule?: string;
  after?: string;
  limit?: number;
}

const text = { type: 'string', nullable: true } as const;
const integer = { type: 'integer' } as const;

const urlText = { ...text, description: 'A URL, or the path of one here.' } as const;
const prefixText = {
  ...text,
  description: 'What the URLs begin with: a URL, or the path of one here.',
} as const;
const ruleText = { ...text, description: 'The id of the page rule that asked for them.' } as const;

/** cache.purge: lets go of kept answers, in all processes at once. */
export function purgeKept({ kept }: CacheOperations): Handler<PurgeInput> {
  return {
    summary: 'Lets go of kept answers of other servers: of a URL, of all that begin so, of a rule.',
    output: {
      title: 'PurgedAnswers',
      type: 'object',
      required: ['urls'],
      properties: { urls: { ...integer, description: 'How many URLs had something kept.' } },
    },
    input: {
      type: 'object',
      properties: {
        url: urlText,
        prefix: prefixText,
        rule: ruleText,
        all: { type: 'boolean', nullable: true },
      },
    },
    run: async (v, { origin }) => ({
      kind: 'data',
      data: { urls: await kept.purge(purgeOf(v, origin)) },
    }),
  };
}

/** cache.list: what is kept, by URL. */
export function listKept({ kept }: CacheOperations): Handler<ListInput> {
  return {
    summary: 'Kept answers of other servers, in the order of their URLs.',
    output: keptList,
    input: {
      type: 'object',
      properties: {
        prefix: prefixText,
        rule: ruleText,
        after: { ...text, description: 'The next of the page before.' },
        limit: { type: 'integer', minimum: 1, maximum: listRowsMax, nullable: true },
      },
    } satisfies JSONSchemaType<ListInput>,
    run: ({ prefix, rule, after, limit = listRowsDefault }, { origin }) => {
      const begins = prefix === undefined ? '' : canonicalUrl(prefix, origin);
      const { rows, next } = kept.list({ prefix: begins, rule, after, limit });
      return { kind: 'data', data: { rows: rows.map(shown), next: next ?? null } };
    },
  };
}

/** cache.status: how much is kept, of how much may be. */
export function keptStatus({ kept }: CacheOperations): Handler<object> {
  return {
    summary: 'How many answers of other servers are kept, and what they take.',
    output: {
      title: 'CacheStatus',
      type: 'object',
      required: ['answers', 'urls', 'bytes', 'bytes_max'],
      properties: { answers: integer, urls: integer, bytes: integer, bytes_max: integer },
    },
    input: { type: 'object' },
    run: () => {
      const { bytesMax, ...counts } = kept.counts();
      return { kind: 'data', data: { ...counts, bytes_max: bytesMax } };
    },
  };
}

const keptList: JsonObject = {
  title: 'CacheListPage',
  type: 'object',
  required: ['rows', 'next'],
  properties: {
    rows: {
      type: 'array',
      items: {
        title: 'CacheListRow',
        type: 'object',
        required: ['url', 'rule', 'status', 'bytes', 'age_seconds', 'fresh_seconds', 'vary'],
        properties: {
          url: { type: 'string' },
          rule: ruleText,
          status: integer,
          contenttype: { type: 'string' },
          bytes: integer,
          age_seconds: integer,
          fresh_seconds: {
            ...integer,
            description: 'For how long it holds from now on; below 0, how long it is stale.',
          },
          vary: { type: 'array', items: { type: 'string' } },
          range: { type: 'string', description: 'Where a part is kept: first-last/length.' },
        },
      },
    },
    next: { type: ['string', 'null'], description: 'Goes into after for the next page.' },
  },
};

/** Throws `invalid` unless exactly one thing is to be let go of. */
function purgeOf({ url, prefix, rule, all }: PurgeInput, origin: string): CachePurge {
  const given: readonly (CachePurge | undefined)[] = [
    url === undefined ? undefined : { kind: 'url', url: canonicalUrl(url, origin) },
    prefix === undefined ? undefined : { kind: 'prefix', prefix: canonicalUrl(prefix, origin) },
    rule === undefined ? undefined : { kind: 'rule', rule },
    all === true ? { kind: 'all' } : undefined,
  ];
  const [purge, ...others] = given.filter((one) => one !== undefined);
  if (purge !== undefined && others.length === 0) return purge;
  throw new Failure('invalid', 'Give one of url, prefix and rule, or all.', { field: 'url' });
}

function canonicalUrl(url: string, origin: string): string {
  return urlOf(parseUrl(url, { origin, query: '' }));
}

function shown({ contentType, ageSeconds, freshSeconds, range, ...kept }: CacheListRow): object {
  return {
    ...kept,
    ...(contentType !== undefined && { contenttype: contentType }),
    age_seconds: ageSeconds,
    fresh_seconds: freshSeconds,
    ...(range !== undefined && { range }),
  };
}
