import assert from 'node:assert/strict';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import fc from 'fast-check';
import type { DiskMount } from '../../../src/core/config/config.ts';
import { publicFile } from '../../../src/core/http/content/page.ts';
import { discard, statusOf } from '../../../src/core/http/reply.ts';
import type { DeviceClass } from '../../../src/core/http/visitor.ts';
import {
  type ExplainedSource,
  type Explanation,
  winnerName,
} from '../../../src/core/pipeline/explanation.ts';
import { type Site, createSite } from '../../../src/cli/serve/assembly/site.ts';
import { Failure } from '../../../src/core/values/failure.ts';
import type { Json, JsonObject } from '../../../src/core/values/json/json.ts';
import { unknownAddress } from '../../../src/core/values/network/peer.ts';
import { AssetFiles } from '../../../src/modules/assets/asset-files.ts';
import { createAssetPages } from '../../../src/modules/assets/asset-pages.ts';
import { createCompressors } from '../../../src/modules/compression/compressors.ts';
import { createPublicFileReplies } from '../../../src/modules/console/public-files.ts';
import { createDisk } from '../../../src/modules/files/disk.ts';
import { createRewriter } from '../../../src/modules/redirects/rewrite-step.ts';
import { candidateOf } from '../../../src/modules/rules/log/rule-index.ts';
import type { CandidateReads } from '../../../src/modules/rules/matcher.ts';
import { createGenericPages } from '../../../src/modules/rules/pages/generic-pages.ts';
import { createStoredPages } from '../../../src/modules/rules/pages/stored-pages.ts';
import {
  type Rule,
  type RuleKind,
  type StoredRule,
  matchingOrigin,
} from '../../../src/modules/rules/rule.ts';
import { type RuleReader, rulesAtTime } from '../../../src/modules/rules/valid-rules.ts';
import { visitorSeeds } from '../../../src/modules/visitors/bucket.ts';
import { temporaryFolder, writeFiles } from '../../folder.ts';
import { mountOf } from '../../modules/files/disk-rig.ts';
import { testFetch, visit } from '../../modules/proxy/fetch-rig.ts';
import { wildcardGroups } from '../../modules/rules/wildcard-groups.ts';
import { pathOf } from '../../request-path.ts';
import { type VisitorTraits, someVisitor } from '../../visitor.ts';
import { httpSource } from '../outbound/sources.ts';

export const shop = 'http://shop.example';

/** The fields of a rule; by default of kind `content` for every origin. */
export type RuleFields = Partial<Rule> & Pick<Rule, 'path'>;

/** A request; by default a GET of the shop's origin. */
export interface TestRequest {
  readonly path: string;
  readonly method?: string;
  readonly origin?: string;
  readonly lang?: string | undefined;
  readonly query?: string;
  readonly visitor?: VisitorTraits;
}

/** The rules `rule 1`, `rule 2` …, each inserted after the previous one. */
export function rulesOf(rules: readonly RuleFields[]): RuleReader {
  const stored = rules.map((fields, at): StoredRule => {
    const kind: RuleKind = 'content';
    const rule = { id: `rule ${at + 1}`, origin: '*', kind, ...fields };
    return { rule, seq: at + 1, insertedSeq: at + 1 };
  });
  const where = (isThere: (rule: Rule) => boolean) =>
    stored.filter(({ rule }) => isThere(rule)).map((one) => candidateOf(one));
  const anyTime: CandidateReads = {
    exactRules: (origin, path) =>
      where((rule) => matchingOrigin(rule) === origin && rule.path === path && !isWildcard(rule)),
    wildcardRules: (origin, path) =>
      wildcardGroups(
        where(
          (rule) =>
            matchingOrigin(rule) === origin &&
            isWildcard(rule) &&
            path.startsWith(rule.path.slice(0, -1)),
        ),
      ),
  };
  const ruleOf: RuleReader['ruleOf'] = ({ id }) => stored.find(({ rule }) => rule.id === id);
  return rulesAtTime({ anyTime, ruleOf }, 0);
}

function isWildcard({ path }: Rule): boolean {
  return path.startsWith('/') && path.endsWith('*');
}

/** The parts of a site, except its rules and mounts. */
export interface Ground {
  /** A folder with the folders `site` and `docs`, which have all kinds of files. */
  readonly folder: string;
  /** URL of a server that answers `/far/…` with 200, or with the status in the path. */
  readonly source: string;
  /** The number of requests to that server. */
  readonly fetches: () => number;
  readonly siteOf: (
    rules: readonly RuleFields[],
    mounts?: readonly DiskMount[],
    proxies?: readonly Rule[],
  ) => Site;
}

/** Creates the parts for many sites. */
export async function createSiteParts(t: TestContext): Promise<Ground> {
  const folder = await temporaryFolder(t);
  await writeFiles(folder, {
    'site/a': 'a file',
    'site/b/index.html': 'an index',
    'site/b/large.bin': Buffer.alloc(300_000, 'x'),
    'site/bare/a': 'a file in a folder without an index',
    'site/.hidden': 'hidden',
    'site/app.html': 'the app',
    'docs/a': 'a document',
    'docs/b/c/a': 'another',
    'elsewhere/secret': 'secret',
  });
  await mkdir(join(folder, 'site/empty'));
  await symlink('../elsewhere/secret', join(folder, 'site/out'));
  await symlink('a', join(folder, 'site/in'));
  let fetches = 0;
  const source = await httpSource(t, (request, response) => {
    fetches += 1;
    response.statusCode = Number(/\/([2-5]\d\d)$/.exec(request.url ?? '')?.[1] ?? 200);
    request.resume();
    response.end('from afar');
  });
  const fetch = testFetch(t);
  const compressors = createCompressors();
  const generic = createGenericPages({
    engines: [
      { name: 'html', page: undefined },
      { name: 'paged', page: '/app.html' },
    ],
    builtInPage: publicFile('text/html', Buffer.from('the built-in page')),
    ownFiles: createPublicFileReplies(compressors.pages),
  });
  return {
    folder,
    source: source.origin,
    fetches: () => fetches,
    siteOf(rules, mounts = [], proxies = []) {
      const disk = createDisk({ mounts, compressors, now: Date.now });
      return createSite({
        rules: rulesOf(rules),
        proxies,
        redirects: [],
        mountRedirects: [],
        rewriter: createRewriter([]),
        steps: [],
        access: undefined,
        disk,
        stored: createStoredPages(compressors),
        assets: { asset: () => undefined },
        assetPages: createAssetPages(new AssetFiles(folder), {
          compressors,
          variants: { find: () => undefined },
        }),
        generic,
        rendered: { respond: (_found, given, { open }) => open(given), memory: () => unusedCache },
        pageRows: { variesByUser: () => false, version: () => '', get: () => Promise.resolve({}) },
        fetch,
      });
    },
  };
}

/** Mounts of the two folders, in the order of a configuration. */
export function mountsOf(folder: string): readonly DiskMount[] {
  const root = (name: string) => join(folder, name);
  return [
    mountOf(root('docs'), { name: 'shop docs', origin: shop, path: '/docs/' }),
    mountOf(root('docs'), { name: 'docs', path: '/docs/', listing: true }),
    mountOf(root('site'), { name: 'site', fallback: 'app.html' }),
    mountOf(root('site'), { name: 'plain', symlinks: 'deny', dotfiles: 'allow' }),
    mountOf(root('docs'), { name: 'all docs', fallback: 'gone.html' }),
  ];
}

/** The reply to a request: its status, and its source as in Server-Timing. */
export async function serve(
  site: Site,
  { path, method = 'GET', origin = shop, query = '', lang, visitor }: TestRequest,
): Promise<{ readonly status: number; readonly source: string }> {
  const fields = lang === undefined ? {} : { 'accept-language': lang };
  try {
    const asks = someVisitor({ ...visitor, lang });
    const reply = await site.respond(visit({ path, method, origin, query, fields, visitor: asks }));
    await discard(reply);
    return { status: reply.status, source: reply.source };
  } catch (thrown) {
    if (!(thrown instanceof Failure)) throw thrown;
    return { status: statusOf[thrown.code], source: thrown.source ?? 'none' };
  }
}

/** The site's explanation of a request. */
export function explain(
  site: Site,
  { path, method = 'GET', origin = shop, query = '', lang, visitor }: TestRequest,
): Explanation {
  const fields = lang === undefined ? {} : { 'accept-language': lang };
  const asks = someVisitor({ ...visitor, lang });
  return site.explain({ method, origin, ...pathOf(path), query, fields, visitor: asks });
}

/** `source: name code` for each candidate; the one that answers has no code. */
export function reasons(tried: readonly ExplainedSource[]): readonly string[] {
  return tried.flatMap(({ source, key, candidates }) =>
    candidates.map(({ mount, id, lost }) =>
      [key === undefined ? `${source}:` : `${source} ${key}:`, mount ?? id, lost?.code]
        .filter((part) => part !== undefined)
        .join(' '),
    ),
  );
}

/**
 * Asserts that an explanation agrees with the reply. Failures of the disk, and replies to OPTIONS,
 * name no source.
 */
export function assertTrue(
  { winner, status, tried }: Explanation,
  served: { readonly status: number; readonly source: string },
): void {
  if (status === null) assert.notEqual(served.source, 'none');
  else assert.equal(served.status, status);
  // Failures of a rule name it too; 204 is the answer to OPTIONS.
  const isNamed = served.source !== 'none' || (winner?.id !== undefined && served.status !== 204);
  if (isNamed) assert.equal(winner && winnerName(winner), served.source);
  assert.equal(winner?.status ?? status, status);
  const sources = tried.filter(({ key }) => key === undefined);
  assert.deepEqual(
    sources.map(({ source }) => source),
    ['disk', 'stored', 'content.fetch', 'fallback'],
  );
  const answering = sources.flatMap(({ source, candidates }) =>
    candidates.filter(({ lost }) => lost === undefined).map(() => source),
  );
  assert.deepEqual(answering, winner === null ? [] : [winner.source]);
}

const langs = ['de', 'de-CH', 'en', 'fr'];
const paths = ['/', '/a', '/a/', '/b', '/b/', '/b/large.bin', '/bare', '/bare/', '/empty/', '/out'];
const morePaths = ['/in', '/.hidden', '/docs', '/docs/', '/docs/a', '/docs/b/c/', '/x', '/x/y'];
const wildcards = ['/*', '/a*', '/b/*', '/docs/*', '/x*'];
const keys = ['spring', 'summer', '/x', 'nowhere'];
const origins = ['*', shop, 'http://other.example'];
const anyPath = fc.constantFrom(...paths, ...morePaths);
const statuses = fc.constantFrom(200, 200, 201, 204, 301, 304, 404, 410, 503);

function optional<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.option(arbitrary, { nil: undefined });
}

type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Removes undefined members. */
function defined<T extends object>(fields: T): Defined<T> {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Defined<T>;
}

const common = fc
  .record({
    origin: fc.constantFrom(...origins),
    lang: optional(fc.constantFrom(...langs)),
    rve: optional(fc.constantFrom(-1, 0, 2)),
    designed_at: optional(fc.constantFrom('2025-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z')),
    httpresponse: optional(statuses),
    // An invalid origin is kept in `_unknowns_`, and the rule matches nothing.
    _unknowns_: fc.option(fc.constant({ origin: 'ftp://x' }), { freq: 8, nil: undefined }),
  })
  .map(defined);

const pages = fc
  .record({
    path: fc.oneof(anyPath, fc.constantFrom(...wildcards)),
    content: optional(fc.constantFrom('', 'a page')),
    engine: optional(fc.constantFrom('html', 'paged')),
    kind: fc.constantFrom<RuleKind>('content', 'content', 'edit-record'),
    enginedata: optional(anyPath.map((page) => ({ page }))),
  })
  .map(defined);

/** Conditions that hold for some visitors, and invalid ones. */
const conditions = fc
  .record({
    user: optional(fc.constantFrom<Json>('*', 'ann', ['ann', 'bob'], 5)),
    role: optional(fc.constantFrom<Json>('editor', ['editor', 'reader'], [])),
    country: optional(fc.constantFrom<Json>('ch', ['CH', 'LI'], 'Switzerland')),
    region: optional(fc.constantFrom<Json>('zh', ['ZH', 'be'], 5)),
    place: optional(fc.constantFrom<Json>('shop-7', ['shop-8', 'shop-9'], '')),
    caller: optional(fc.constantFrom<Json>('navigation', ['image', 'api'], 'browser')),
    referer: optional(fc.constantFrom<Json>('a.example', ['*.a.example'], 'a/b')),
    lang: optional(fc.constantFrom<Json>('de', ['fr', 'en'], '!')),
    device: optional(fc.constantFrom<Json>('mobile', ['ios', 'android'], 'fridge')),
    query: optional(fc.constantFrom<Json>({ a: '1' }, { a: '*' }, { a: ['1', '2'] }, 'a')),
    ip: optional(fc.constantFrom<Json>('192.0.2.0/24', ['2001:db8::/32'], '1.2.3')),
    after: optional(fc.constantFrom<Json>('2026-01-01', '2026-01-15T00:00:00Z')),
    before: optional(fc.constantFrom<Json>('2026-01-15T00:00:00Z', 'soon')),
    percent: optional(fc.constantFrom<Json>(0, 30, 50, 100, 101)),
    weekday: fc.option(fc.constant<Json>('monday'), { nil: undefined, freq: 20 }),
  })
  .map(defined);

const branches = fc
  .tuple(
    fc.oneof(
      { weight: 8, arbitrary: conditions },
      { weight: 1, arbitrary: fc.constant(undefined) },
    ),
    fc.oneof(
      fc
        .constantFrom('/b', 'https://other.example/b', 'javascript:b', ...keys.map(toKey))
        .map((target): JsonObject => ({ target })),
      fc.constantFrom<JsonObject>({}, { html: 'for some' }, { status: 403 }, { status: 99 }),
    ),
  )
  .map(([some, answer]): JsonObject => ({ ...answer, ...(some && { if: some }) }));

const answers: fc.Arbitrary<JsonObject> = fc.oneof(
  fc
    .constantFrom('/a', 'https://other.example/', 'https://other.example/*', ...keys.map(toKey))
    .map((target) => ({ target })),
  fc.constantFrom({}, { html: 'a page' }, { status: 410 }, { html: 'gone', status: 404 }),
);

const crumbs = fc.record({
  kind: fc.constant<RuleKind>('resolve'),
  path: fc.oneof(fc.constantFrom(...keys), anyPath, fc.constantFrom(...wildcards)),
  enginedata: fc
    .tuple(answers, optional(fc.array(branches, { maxLength: 4 })))
    .map(([answer, when]): JsonObject => ({ ...answer, ...(when && { when }) })),
});

/** A target that is the key of another breadcrumb. */
function toKey(key: string): string {
  return `key:${key}`;
}

/** Visitors that meet different conditions above. */
const visitors: fc.Arbitrary<VisitorTraits> = fc
  .record({
    address: fc.constantFrom('192.0.2.7', '198.51.100.1', '2001:db8::1', unknownAddress),
    nowMs: fc.constantFrom(Date.UTC(2026, 0, 10), Date.UTC(2026, 0, 20)),
    devices: fc.constantFrom<readonly DeviceClass[]>([], ['mobile', 'ios'], ['bot', 'desktop']),
    seed: fc.nat({ max: visitorSeeds - 1 }),
    user: optional(fc.constantFrom({ name: 'ann', roles: [] }, { name: 'eve', roles: ['editor'] })),
    country: optional(fc.constantFrom('CH', 'DE')),
    regions: optional(fc.constantFrom(['zh'], ['be'])),
    place: optional(fc.constantFrom('shop-7', 'shop-9')),
    fields: optional(
      fc.constantFrom<Readonly<Record<string, string>>>(
        { 'sec-fetch-dest': 'document', referer: 'https://a.example/' },
        { 'sec-fetch-dest': 'image', referer: 'https://www.a.example/' },
      ),
    ),
  })
  .map(defined);

/** Rules of the kind content.fetch, with and without a usable source. */
function fetches(source: string): fc.Arbitrary<RuleFields> {
  return fc
    .record({
      path: fc.oneof(anyPath, fc.constantFrom(...wildcards)),
      target: fc.constantFrom('/far/', '/far/404', '/far/*', '/far/*', ' nowhere'),
      methods: optional(fc.subarray(['GET', 'HEAD', 'POST', 'OPTIONS', 'PUT'])),
    })
    .map(({ path, target, methods }) => ({
      kind: 'content.fetch',
      path,
      enginedata: { source: source + target, ...(methods && { methods }) },
    }));
}

/** Sets of rules of all kinds with few paths, so that many compete. */
export function ruleSets(source: string): fc.Arbitrary<readonly RuleFields[]> {
  const rule = fc
    .tuple(common, fc.oneof(pages, pages, crumbs, fetches(source)))
    .map(([fields, own]): RuleFields => ({ ...fields, ...own }));
  return fc.array(rule, { maxLength: 14 });
}

/** Requests for existing and missing paths. */
export const askings: fc.Arbitrary<TestRequest> = fc.record({
  path: anyPath,
  method: fc.constantFrom('GET', 'GET', 'GET', 'HEAD', 'POST', 'OPTIONS', 'PUT'),
  origin: fc.constantFrom(shop, shop, 'http://other.example', 'http://third.example'),
  query: fc.constantFrom('', 'a=1', 'a=2&a=3', 'b'),
  visitor: visitors,
  lang: optional(
    fc
      .array(fc.tuple(fc.constantFrom(...langs, '*'), fc.constantFrom('', ';q=0', ';q=0.5')), {
        minLength: 1,
        maxLength: 3,
      })
      .map((tags) => tags.map(([tag, q]) => tag + q).join(', ')),
  ),
});

const unusedCache = { name: '', entries: 0, bytes: 0, bytes_max: 0 };
