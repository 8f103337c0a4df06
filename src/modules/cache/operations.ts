import type { StaticInput, StaticOutput } from '../../core/values/json/static.ts';
import { Failure } from '../../core/values/failure.ts';
import type { CacheListRow, CacheAdmin, CachePurge } from './cache-admin.ts';
import { listRowsDefault, listRowsMax } from '../../core/operations/limits.ts';
import { urlOf } from '../../core/values/path.ts';
import type { Notice } from '../../core/log/shared/entry.ts';
import type { Store } from '../../core/log/store.ts';
import { defineOperation } from '../../core/operations/operation.ts';
import { parseUrl } from '../../core/operations/place.ts';

/** The parts that the operations on the cache need. */
interface CacheParts {
  readonly cache: CacheAdmin;
  readonly store: Pick<Store, 'shared'>;
}

const text = { type: 'string', nullable: true } as const;
const integer = { type: 'integer' } as const;

const urlText = {
  ...text,
  description: 'A URL, or a path on this site. Every spelling of it is removed.',
} as const;
const prefixText = {
  ...text,
  description: 'The start of the URLs, with their origin or as a path on this site.',
} as const;
const ruleText = { ...text, description: 'The id of the page rule that fetched them.' } as const;

/** The name of the notice that tells all nodes of a cluster to purge their caches. */
const purgeNotice = 'cache.purge';

/** Purges the cache of this node, if that is what a notice of the cluster says. */
export async function applyPurge(cache: CacheAdmin, { name, data }: Notice): Promise<void> {
  if (name === purgeNotice) await cache.purge(data as unknown as CachePurge);
}

const purgeInput = {
  type: 'object',
  properties: {
    url: urlText,
    prefix: prefixText,
    rule: ruleText,
    all: { type: 'boolean', nullable: true, description: 'Everything.' },
  },
} as const;

type PurgeInput = StaticInput<typeof purgeInput>;

/** cache.purge: removes stored responses, in all processes and on all nodes of a cluster. */
export const purgeCache = defineOperation({
  name: 'svc1.cache.purge',
  scope: 'design',
  effect: 'writes',
  summary: 'Removes stored responses of other servers: of a URL, a prefix, a rule, or all.',
  output: {
    title: 'PurgedAnswers',
    type: 'object',
    required: ['urls'],
    properties: { urls: { ...integer, description: 'Number of URLs with stored responses.' } },
  },
  input: purgeInput,
  run:
    ({ cache, store }: CacheParts) =>
    async (v, { origin }) => {
      const purge = purgeOf(v, origin);
      const urls = await cache.purge(purge);
      await store.shared?.tell({ name: purgeNotice, data: { ...purge } });
      return { kind: 'data', data: { urls } };
    },
});

const cacheRow = {
  title: 'CacheListRow',
  type: 'object',
  required: ['url', 'rule', 'status', 'bytes', 'age_seconds', 'fresh_seconds', 'vary'],
  properties: {
    url: { type: 'string', description: 'As a client sent it.' },
    rule: ruleText,
    status: integer,
    contenttype: { type: 'string' },
    bytes: integer,
    age_seconds: integer,
    fresh_seconds: {
      ...integer,
      description: 'How long it stays fresh; below 0, how long it has been stale.',
    },
    vary: { type: 'array', items: { type: 'string' } },
    range: {
      type: 'string',
      description: 'The stored part of the content: first-last/length.',
    },
  },
} as const;

const cacheList = {
  title: 'CacheListPage',
  type: 'object',
  required: ['rows', 'next'],
  properties: {
    rows: {
      type: 'array',
      items: cacheRow,
    },
    next: {
      type: ['string', 'null'],
      description: 'Send it as after to get the next page; null at the end.',
    },
  },
} as const;

/** cache.list: the stored responses, by URL. */
export const listCache = defineOperation({
  name: 'svc1.cache.list',
  scope: 'read',
  effect: 'reads',
  summary: 'Stored responses of other servers, in the order of their URLs.',
  output: cacheList,
  input: {
    type: 'object',
    properties: {
      prefix: prefixText,
      rule: ruleText,
      after: { ...text, description: 'The next of the page before.' },
      limit: { type: 'integer', minimum: 1, maximum: listRowsMax, nullable: true },
    },
  },
  run:
    ({ cache }: CacheParts) =>
    ({ prefix, rule, after, limit = listRowsDefault }, { origin }) => {
      const start = prefix === undefined ? '' : canonicalUrl(prefix, origin);
      const { rows, next } = cache.list({ prefix: start, rule, after, limit });
      return { kind: 'data', data: { rows: rows.map(shown), next: next ?? null } };
    },
});

/** cache.status: the size of the cache, and its limit. */
export const cacheStatus = defineOperation({
  name: 'svc1.cache.status',
  scope: 'read',
  effect: 'reads',
  summary: 'Number and size of the stored responses of other servers.',
  output: {
    title: 'CacheStatus',
    type: 'object',
    required: ['answers', 'urls', 'bytes', 'bytes_max'],
    properties: { answers: integer, urls: integer, bytes: integer, bytes_max: integer },
  },
  input: { type: 'object' },
  run:
    ({ cache }: CacheParts) =>
    () => {
      const { bytesMax, ...counts } = cache.counts();
      return { kind: 'data', data: { ...counts, bytes_max: bytesMax } };
    },
});

/** Throws `invalid` unless the input selects in exactly one way. */
function purgeOf({ url, prefix, rule, all }: PurgeInput, origin: string): CachePurge {
  const given: readonly (CachePurge | undefined)[] = [
    url === undefined ? undefined : { kind: 'url', url: canonicalUrl(url, origin) },
    prefix === undefined ? undefined : { kind: 'prefix', prefix: canonicalUrl(prefix, origin) },
    rule === undefined ? undefined : { kind: 'rule', rule },
    all === true ? { kind: 'all' } : undefined,
  ];
  const [purge, ...others] = given.filter((one) => one !== undefined);
  if (purge !== undefined && others.length === 0) return purge;
  throw new Failure('invalid', 'Give exactly one of url, prefix, rule and all.', { field: 'url' });
}

function canonicalUrl(url: string, origin: string): string {
  return urlOf(parseUrl(url, { origin, query: '' }));
}

function shown({
  contentType,
  ageSeconds,
  freshSeconds,
  range,
  ...kept
}: CacheListRow): StaticOutput<typeof cacheRow> {
  return {
    ...kept,
    ...(contentType !== undefined && { contenttype: contentType }),
    age_seconds: ageSeconds,
    fresh_seconds: freshSeconds,
    ...(range !== undefined && { range }),
  };
}
