import type { StaticInput, StaticOutput } from '../../model/static.ts';
import type { SiteDraft } from '../../model/draft.ts';
import { readContent } from '../../http/content.ts';
import { discard, replyField, type Reply } from '../../http/reply.ts';
import type { RequestTarget } from '../../http/request.ts';
import { statusOf } from '../../http/status.ts';
import { Failure, failureFrom } from '../../model/failure.ts';
import { isInside, type BoundedPlace } from '../../model/bounds.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Caller } from '../../model/key.ts';
import type { Location } from '../../model/visitor.ts';
import type { RowReader } from '../../rendering/rendered-pages.ts';
import type { Reads, Store } from '../../store/store.ts';
import { openDraftSeen } from '../bounds/drafts.ts';
import { isSourceInside, requireInside, rulesInside } from '../bounds/rules.ts';
import { defineOperation, type Call } from '../operation.ts';
import { clientOf } from '../rules/page-lookup.ts';
import { parseOrigin, parseUrl, requireBreadcrumbKey } from '../rules/place.ts';
import { previewFor, previewProperties, previewTimeMs, type Previewed } from '../rules/preview.ts';
import type { SiteAccess } from '../../site/site-access.ts';
import { draftProperty } from './drafts.ts';
import { comparedAtOnce, comparedBytesMax, comparedUrlsMax } from './limits.ts';
import { versionsIn } from './publish-plan.ts';

/** The parts that compare needs. */
interface CompareParts {
  readonly store: Store;
  readonly site: SiteAccess;
  /** The rows that pages show in previews: those that a caller may read. */
  readonly rowsFor: (call: Call) => RowReader;
  /** The site as a draft has it, with such rows. */
  readonly siteOf: (draft: SiteDraft) => Pick<CompareParts, 'site' | 'rowsFor'>;
  readonly locationOf: (address: string) => Promise<Location>;
}

const text = { type: 'string' } as const;
const lines = { ...text, nullable: true } as const;
const count = (description: string) => ({ type: 'integer', description }) as const;

const answerSchema = {
  type: 'object',
  required: ['status', 'source'],
  properties: {
    status: { type: 'integer' },
    source: { ...text, description: 'The source that answers: disk:<name>, rule:<id> or none.' },
    target: { ...text, description: 'The Location of a redirect.' },
    line: { ...text, description: 'The first line of the content that differs.' },
    failure: { ...text, description: 'Why there is no answer.' },
  },
} as const;

const comparedRow = {
  type: 'object',
  required: ['differs', 'live', 'draft'],
  properties: {
    url: text,
    key: { ...text, description: 'The key of a breadcrumb.' },
    differs: {
      type: 'array',
      items: { ...text, enum: ['status', 'target', 'headers', 'content'] },
    },
    headers: { type: 'array', items: text, description: 'The fields that differ.' },
    live: answerSchema,
    draft: answerSchema,
  },
} as const;

type ComparedRow = StaticOutput<typeof comparedRow>;

const compareInput = {
  type: 'object',
  required: ['draft'],
  properties: {
    draft: draftProperty,
    urls: { ...lines, description: 'URLs, or paths at the origin: one a line.' },
    keys: { ...lines, description: 'Keys of breadcrumbs: one a line.' },
    origin: { ...text, nullable: true, description: 'That of the request by default.' },
    ...previewProperties,
  },
} as const;

type CompareInput = StaticInput<typeof compareInput>;

/**
 * draft.compare: answers URLs and breadcrumbs live and in a draft, and returns those whose answers
 * differ. Without any, those of the page rules that the draft changes.
 */
export const compareDraft = defineOperation({
  name: 'svc1.draft.compare',
  scope: 'read',
  effect: 'reads',
  summary: 'The URLs and breadcrumbs whose answers differ between a draft and the live site.',
  input: compareInput,
  output: {
    title: 'DraftComparison',
    type: 'object',
    required: ['compared', 'differing', 'rows'],
    properties: {
      compared: count('How many were answered live and in the draft.'),
      differing: count('How many of them differ.'),
      rows: {
        type: 'array',
        description: 'Those that differ, in their order.',
        items: comparedRow,
      },
    },
  },
  failures: ['not_found', 'conflict'],
  run: (parts: CompareParts) => async (v, call) => {
    const { store } = parts;
    const { caller } = call;
    const draft = openDraftSeen({ store, reads: store }, v.draft, caller);
    const origin = v.origin === undefined ? call.origin : parseOrigin(v.origin);
    const { locationOf } = parts;
    const previewed = await previewFor(v, call, { nowMs: undefined, locationOf });
    const visitor = previewed ?? { visitor: call.visitor, fields: {} };
    const asked = questions(parts, v, { draft, origin, caller });
    // What a described visitor may read decides nothing: see previewFor.
    const shown = ({ site, rowsFor }: Pick<CompareParts, 'site' | 'rowsFor'>): SiteAccess =>
      previewed === undefined ? site : site.withRows(rowsFor(call), previewTimeMs(v));
    const ofDraft = parts.siteOf(draft);
    const timeMs = previewTimeMs(v) ?? call.visitor.nowMs;
    const sites = {
      live: comparedSite(shown(parts), { reads: store, rows: parts.rowsFor(call), caller, timeMs }),
      draft: comparedSite(shown(ofDraft), {
        ...{ reads: store.inDraft(draft), rows: ofDraft.rowsFor(call), caller, timeMs },
      }),
    };
    const rows: ComparedRow[] = [];
    for (let at = 0; at < asked.length; at += comparedAtOnce) {
      const group = asked.slice(at, at + comparedAtOnce);
      const compared = await Promise.all(
        group.map((one) => compareAnswers(sites, one, { visitor, call, origin })),
      );
      for (const row of compared) if (row !== undefined) rows.push(row);
    }
    return { kind: 'data', data: { compared: asked.length, differing: rows.length, rows } };
  },
});

/** A URL, or the key of a breadcrumb. */
type Question = { readonly url: string; readonly target: RequestTarget } | { readonly key: string };

/** The URLs and keys to compare; by default those of the rules that the draft changes. */
function questions(
  { store }: Pick<CompareParts, 'store'>,
  { urls, keys }: CompareInput,
  {
    draft,
    origin,
    caller,
  }: { readonly draft: SiteDraft; readonly origin: string; readonly caller: Caller },
): readonly Question[] {
  const ofUrl = (url: string): Question => ({ url, target: parseUrl(url, { origin, query: '' }) });
  if (urls !== undefined || keys !== undefined) {
    const named = linesOf(keys);
    for (const key of named) requireBreadcrumbKey(key);
    const all = [...linesOf(urls).map(ofUrl), ...named.map((key) => ({ key }))];
    for (const one of all) requireInside(caller, placeOf(one, origin), 'key' in one ? 'k' : 'url');
    if (all.length <= comparedUrlsMax) return all;
    const message = `A comparison has at most ${comparedUrlsMax} URLs and keys.`;
    throw new Failure('too_large', message, { field: 'urls' });
  }
  const asked = new Map<string, Question>();
  const inDraft = store.inDraft(draft);
  for (const record of store.draftRecords(draft)) {
    if (record.family !== 'userinterface') continue;
    const { live, draft: drafted } = versionsIn(inDraft, record);
    for (const fields of [live, drafted]) {
      if (asked.size >= comparedUrlsMax) return [...asked.values()];
      const question = fields && questionOf(fields, ofUrl);
      if (question === undefined || !isInside(caller.bounds, placeOf(question, origin))) continue;
      asked.set(JSON.stringify(question), question);
    }
  }
  return [...asked.values()];
}

function placeOf(question: Question, origin: string): BoundedPlace {
  return 'key' in question ? { origin, path: question.key } : question.target;
}

function linesOf(given = ''): readonly string[] {
  return given
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** The URL of a rule without a wildcard, or the key of a breadcrumb. */
function questionOf(
  { origin, path, kind }: JsonObject,
  ofUrl: (url: string) => Question,
): Question | undefined {
  if (typeof path !== 'string' || path.endsWith('*')) return undefined;
  if (kind === 'resolve') return { key: path };
  try {
    return ofUrl(origin === '*' || typeof origin !== 'string' ? path : `${origin}${path}`);
  } catch (error) {
    // No visitor can ask for this path.
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

interface Compared {
  readonly status: number;
  readonly source: string;
  readonly target?: string;
  readonly failure?: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly content: Buffer;
}

/** The differences of the answers to one question; undefined if they are equal. */
async function compareAnswers(
  sites: { readonly live: ComparedSite; readonly draft: ComparedSite },
  question: Question,
  asked: { readonly visitor: Previewed; readonly call: Call; readonly origin: string },
): Promise<ComparedRow | undefined> {
  const [live, draft] = await Promise.all([
    answerOf(sites.live, question, asked),
    answerOf(sites.draft, question, asked),
  ]);
  const headers = differingNames(live.headers, draft.headers);
  const isText = live.content.equals(draft.content);
  const differs: ComparedRow['differs'] = [
    ...(live.status === draft.status ? [] : ['status' as const]),
    ...(live.target === draft.target ? [] : ['target' as const]),
    ...(headers.length === 0 ? [] : ['headers' as const]),
    ...(isText ? [] : ['content' as const]),
  ];
  if (differs.length === 0) return undefined;
  const lines = isText ? [] : firstDifference(live.content, draft.content);
  return {
    ...('key' in question ? { key: question.key } : { url: question.url }),
    differs,
    ...(headers.length > 0 && { headers }),
    live: shownAnswer(live, lines[0]),
    draft: shownAnswer(draft, lines[1]),
  };
}

function shownAnswer(
  { status, source, target, failure }: Compared,
  line: string | undefined,
): ComparedRow['live'] {
  return {
    status,
    source,
    ...(target !== undefined && { target }),
    ...(failure !== undefined && { failure }),
    ...(line !== undefined && { line }),
  };
}

/** The site that answers one side of a comparison. */
interface ComparedSite {
  readonly site: SiteAccess;
  /** The same site, in which a bound key resolves breadcrumbs. */
  readonly breadcrumbs: SiteAccess;
  /** Whether the caller may see a reply or failure, by its source. */
  readonly isSeen: (source: string | undefined) => boolean;
}

function comparedSite(
  site: SiteAccess,
  {
    reads,
    rows,
    caller: { bounds },
    timeMs,
  }: {
    readonly reads: Reads;
    readonly rows: RowReader;
    readonly caller: Caller;
    readonly timeMs: number;
  },
): ComparedSite {
  if (bounds === undefined) return { site, breadcrumbs: site, isSeen: () => true };
  const inside = rulesInside(reads, bounds);
  return {
    site,
    breadcrumbs: site.at(inside, rows, timeMs),
    isSeen: isSourceInside(inside),
  };
}

async function answerOf(
  { site, breadcrumbs, isSeen }: ComparedSite,
  question: Question,
  { visitor, call, origin }: Parameters<typeof compareAnswers>[2],
): Promise<Compared> {
  try {
    const reply =
      'key' in question
        ? await breadcrumbReply(breadcrumbs, question.key, { visitor, call, origin })
        : await pageReply(site, question.target, { visitor, call });
    const { status, source } = reply;
    if ('url' in question && !isSeen(source)) {
      await discard(reply);
      return failedAnswer(noRuleInside);
    }
    const target = replyField(reply, 'location');
    const content = await readContent(reply, comparedBytesMax);
    const answer = { status, source, headers: headersOf(reply), content };
    // The content of a redirect only repeats its target.
    return target === undefined ? answer : { ...answer, target, content: Buffer.alloc(0) };
  } catch (error) {
    const failure = failureFrom(error);
    const isHidden = 'url' in question && !isSeen(failure.source);
    return failedAnswer(isHidden ? noRuleInside : failure);
  }
}

/** What a bound key sees of an answer that no page rule inside makes. */
const noRuleInside = {
  code: 'not_found',
  message: 'No page rule inside of the bounds of this key answers.',
} as const;

function failedAnswer({ code, message }: Pick<Failure, 'code' | 'message'>): Compared {
  const failed = { status: statusOf[code], source: 'none', failure: message };
  return { ...failed, headers: new Map(), content: Buffer.alloc(0) };
}

async function breadcrumbReply(
  site: SiteAccess,
  key: string,
  { visitor, call, origin }: Parameters<typeof compareAnswers>[2],
): Promise<Reply> {
  const visit = { key, origin, query: '', ...visitor, client: clientOf(call) };
  return site.breadcrumb(await site.resolve(visit), visit);
}

async function pageReply(
  site: SiteAccess,
  target: RequestTarget,
  { visitor, call }: { readonly visitor: Previewed; readonly call: Call },
): Promise<Reply> {
  return site.respond({
    method: 'GET',
    ...target,
    fields: visitor.fields,
    address: call.caller.address,
    visitor: visitor.visitor,
    client: clientOf(call),
    body: undefined,
    signal: call.signal(),
  });
}

/** Fields that two answers to the same request may differ in without any change of the site. */
const changing: ReadonlySet<string> = new Set([
  'age',
  'cache-status',
  'date',
  'etag',
  'location',
  'server-timing',
  'set-cookie',
]);

function headersOf({ fields }: Pick<Reply, 'fields'>): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  for (let at = 0; at < fields.length; at += 2) {
    const name = (fields[at] ?? '').toLowerCase();
    if (changing.has(name) || name === 'content-length') continue;
    const before = headers.get(name);
    const value = fields[at + 1] ?? '';
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return headers;
}

function differingNames(
  one: ReadonlyMap<string, string>,
  other: ReadonlyMap<string, string>,
): readonly string[] {
  const names = new Set([...one.keys(), ...other.keys()]);
  return [...names].filter((name) => one.get(name) !== other.get(name)).toSorted();
}

const shownLineCharacters = 200;

/** The first lines that differ, shortened; none for content that is no text. */
function firstDifference(one: Buffer, other: Buffer): readonly string[] {
  const [lines, others] = [one, other].map((bytes) => bytes.toString('utf8').split('\n'));
  const at = (lines ?? []).findIndex((line, index) => line !== others?.[index]);
  const index = at === -1 ? (lines?.length ?? 0) : at;
  const shown = [lines?.[index] ?? '', others?.[index] ?? ''];
  if (shown.some((line) => line.includes('\u0000') || line.includes('\ufffd'))) return [];
  return shown.map((line) => line.slice(0, shownLineCharacters).toWellFormed());
}
