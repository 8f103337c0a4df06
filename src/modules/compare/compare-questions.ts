import { originsOf } from '../rules/rule.ts';
import { originAt } from '../../core/values/network/origin-pattern.ts';
import { comparedUrlsMax } from './comparison.ts';
import type { WorkTurns } from '../../core/fair/turns.ts';
import { readContent } from '../../core/http/content/content.ts';
import { discard } from '../../core/http/reply.ts';
import type { Reads } from '../../core/log/store.ts';
import type { DraftedRecordName } from '../drafts/log/drafts-reads.ts';
import { parseUrl, requireBreadcrumbKey } from '../../core/operations/place.ts';
import { isInside } from '../../core/values/bounds.ts';
import { Failure } from '../../core/values/failure.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import type { Caller } from '../../core/values/key.ts';
import { encodePath, hasWildcard } from '../../core/values/path.ts';
import type { SiteDraft } from '../drafts/draft.ts';
import { comparedDaysDefault } from '../drafts/operations/limits.ts';
import { versionsIn } from '../drafts/operations/publish-plan.ts';
import { requireInside } from '../rules/bounds/rules.ts';
import type { PageDimension } from '../visits/visit-counts.ts';
import type { DaySpan, DayVisits } from '../visits/visit-database.ts';
import { type Asker, type ComparedSites, type Question, replyTo } from './compare-answers.ts';
import { storedDrafts } from '../drafts/log/family.ts';

/** URLs of the sitemaps of a site … */
const sitemapUrlsMax = 50_000;

/** … bytes of one of them, and how many an index may name. */
const sitemapBytesMax = 16 * 2 ** 20;
const sitemapsMax = 50;

/** A page of what a comparison asks. */
export interface QuestionPage {
  readonly questions: readonly Question[];
  /** The `after` of the next page; null at the end. */
  readonly next: string | null;
  /** Questions of all pages together, or a little more. */
  readonly total: number;
}

/** Where a page of questions begins, and how long it is. */
interface QuestionPlace {
  readonly after: string;
  readonly limit: number;
}

/** The counts of the visits of breadcrumbs and of pages; `flush` writes those in memory. */
export interface VisitReads {
  readonly visits: {
    flush(): Promise<void>;
    ofAll(span: DaySpan): AsyncIterable<DayVisits>;
  };
  readonly requestVisits: {
    flush(): Promise<void>;
    ofPages(span: DaySpan): AsyncIterable<DayVisits<PageDimension>>;
  };
}

/** The caller, and the origin of paths alone. */
interface Asked {
  readonly origin: string;
  readonly caller: Caller;
}

/**
 * The URLs and keys that a caller names, one a line. Throws `invalid`, `forbidden` for one outside
 * of the bounds of the caller, and `too_large`.
 */
export function givenQuestions(
  { urls = [], keys = [] }: { readonly urls?: Lines; readonly keys?: Lines },
  { origin, caller }: Asked,
): QuestionPage {
  const named = linesOf(keys);
  for (const key of named) requireBreadcrumbKey(key);
  const questions = [
    ...linesOf(urls).map((url) => urlQuestion(url, origin)),
    ...named.map((key) => ({ key, origin })),
  ];
  for (const one of questions) requireInside(caller, placeOf(one), 'key' in one ? 'k' : 'url');
  if (questions.length <= comparedUrlsMax)
    return { questions, next: null, total: questions.length };
  const message = `One comparison has at most ${comparedUrlsMax} URLs and keys. Send more calls.`;
  throw new Failure('too_large', message, { field: 'urls' });
}

/** A list, or a text with an item on each line. */
type Lines = string | readonly string[];

function linesOf(given: Lines): readonly string[] {
  return (typeof given === 'string' ? given.split('\n') : given)
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function urlQuestion(url: string, origin: string): Question {
  return { url, target: parseUrl(url, { origin, query: '' }) };
}

function placeOf(question: Question): { readonly origin: string; readonly path: string } {
  return 'key' in question ? { ...question, path: question.key } : question.target;
}

/** The URLs and keys of the page rules that a draft changes, as they are live and in the draft. */
export async function ruleQuestions(
  inDraft: Reads,
  { draft, turns, ...asked }: Asked & { readonly draft: SiteDraft; readonly turns: WorkTurns },
  { after, limit }: QuestionPlace,
): Promise<QuestionPage> {
  const found = new Map<string, Question>();
  let last: DraftedRecordName | undefined;
  let next: string | null = null;
  const start = after === '' ? undefined : ({ family: 'userinterface', id: after } as const);
  for (const record of inDraft.of(storedDrafts).draftRecords(draft, start)) {
    if (record.family !== 'userinterface') break;
    if (turns.isOver()) await turns.next();
    // A record adds one or two.
    if (found.size + 2 > Math.max(2, limit) && last !== undefined) {
      next = last.id;
      break;
    }
    last = record;
    const { live, draft: drafted } = versionsIn(inDraft, record);
    for (const fields of [live, drafted]) {
      const question = fields && questionOf(fields, asked);
      if (question !== undefined) found.set(JSON.stringify(question), question);
    }
  }
  return { questions: [...found.values()], next, total: await changedRules(inDraft, draft, turns) };
}

async function changedRules(reads: Reads, draft: SiteDraft, turns: WorkTurns): Promise<number> {
  let count = 0;
  for (const { family } of reads.of(storedDrafts).draftRecords(draft)) {
    if (family !== 'userinterface') break;
    if (turns.isOver()) await turns.next();
    count += 1;
  }
  return count;
}

/** The URL of a rule without a wildcard, or the key of a breadcrumb. */
function questionOf(
  { origin: own, path, kind }: JsonObject,
  { origin, caller }: Asked,
): Question | undefined {
  if (typeof path !== 'string' || hasWildcard(path)) return undefined;
  const at = typeof own === 'string' ? originAt(originsOf(own), origin) : origin;
  if (kind === 'resolve' && !path.startsWith('/')) {
    const question = { key: path, origin: at };
    return isInside(caller.bounds, placeOf(question)) ? question : undefined;
  }
  return visibleQuestion(at === origin ? path : `${at}${path}`, { origin, caller });
}

/**
 * The pages at an origin and the breadcrumbs that were visited most in some days up to a time
 * (milliseconds since 1970), the most visited first.
 */
export async function visitedQuestions(
  { visits, requestVisits }: VisitReads,
  {
    days = comparedDaysDefault,
    nowMs,
  }: { readonly days: number | undefined; readonly nowMs: number },
  { origin, caller, limit }: Asked & Pick<QuestionPlace, 'limit'>,
): Promise<QuestionPage> {
  const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 'yyyy-mm-dd'.length);
  const span = { from: dayOf(nowMs - (days - 1) * 86_400_000), until: dayOf(nowMs) };
  const found = new Map<string, { readonly question: Question; count: number }>();
  const add = async (
    days: AsyncIterable<DayVisits<never>>,
    ask: (path: string) => Question,
  ): Promise<void> => {
    for await (const { path, origin: own, counts } of days) {
      if (path === '' || (own !== '*' && own !== origin)) continue;
      const question = ask(path);
      if (!isInside(caller.bounds, placeOf(question))) continue;
      const id = JSON.stringify(question);
      const known = found.get(id) ?? { question, count: 0 };
      known.count += counts.visits;
      found.set(id, known);
    }
  };
  await Promise.all([visits.flush(), requestVisits.flush()]);
  await add(requestVisits.ofPages(span), (path) => urlQuestion(encodePath(path), origin));
  await add(visits.ofAll(span), (key) => ({ key, origin }));
  const sorted = [...found.values()].toSorted((one, other) => other.count - one.count);
  const questions = sorted.slice(0, limit).map(({ question }) => question);
  return { questions, next: null, total: questions.length };
}

/**
 * The URLs at an origin that its sitemap has live or in the draft, in their order by text. Rejects
 * with `not_found` without one, and with `too_large`.
 */
export async function sitemapQuestions(
  sites: ComparedSites,
  { asker, ...asked }: Asked & { readonly asker: Asker },
  { after, limit }: QuestionPlace,
): Promise<QuestionPage> {
  const { origin } = asked;
  const listed = new Set<string>();
  for (const site of [sites.live, sites.draft]) {
    for (const url of await sitemapUrls(site, { asker, origin })) listed.add(url);
  }
  if (listed.size === 0) {
    const message = `${origin}/sitemap.xml lists no page of ${origin}.`;
    throw new Failure('not_found', message, { field: 'list' });
  }
  const left = [...listed].filter((url) => url > after).sort();
  const questions: Question[] = [];
  let last = after;
  for (const url of left) {
    if (asker.turns.isOver()) await asker.turns.next();
    const question = visibleQuestion(url, asked);
    if (question === undefined) continue;
    if (questions.length >= limit) return { questions, next: last, total: listed.size };
    questions.push(question);
    last = url;
  }
  return { questions, next: null, total: listed.size };
}

/** The question for a URL of the site's own; undefined for one that the caller may not ask for. */
function visibleQuestion(url: string, { origin, caller }: Asked): Question | undefined {
  try {
    const question = urlQuestion(url, origin);
    return isInside(caller.bounds, placeOf(question)) ? question : undefined;
  } catch (error) {
    // No visitor can ask for this URL.
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

/** The URLs of the sitemap of a site (sitemaps.org), also of those that an index names. */
async function sitemapUrls(
  site: ComparedSites['live'],
  { asker, origin }: { readonly asker: Asker; readonly origin: string },
): Promise<ReadonlySet<string>> {
  const urls = new Set<string>();
  const places = new Set([`${origin}/sitemap.xml`]);
  let read = 0;
  // The loop also visits sitemaps that it adds to the set, each of them once.
  for (const place of places) {
    const text = await sitemapText(site, urlQuestion(place, origin), asker);
    // An index names sitemaps, and no sitemap is an index of indexes.
    const isIndex = read === 0 && /<sitemapindex[\s>]/.test(text);
    const found = isIndex ? places : urls;
    let count = 0;
    for (const url of locationsOf(text)) {
      if (isIndex && found.size >= sitemapsMax) break;
      if (asker.turns.isOver()) await asker.turns.next();
      if (url.startsWith(`${origin}/`)) found.add(url);
      count += 1;
      if (count > sitemapUrlsMax || urls.size > sitemapUrlsMax) throw tooManyUrls();
    }
    read += 1;
  }
  return urls;
}

function tooManyUrls(): Failure {
  const message = `The sitemap has more than ${sitemapUrlsMax} URLs. Send them in urls instead.`;
  return new Failure('too_large', message, { field: 'list' });
}

/** The text of a sitemap; empty if the site has none that the caller may see. */
async function sitemapText(
  site: ComparedSites['live'],
  question: Question,
  asker: Asker,
): Promise<string> {
  try {
    const reply = await replyTo(site, question, asker);
    if (reply.status === 200 && site.isSeen(reply.source)) {
      return (await readContent(reply, sitemapBytesMax)).toString('utf8');
    }
    await discard(reply);
  } catch (error) {
    if (!(error instanceof Failure) || error.code === 'too_large') throw error;
  }
  return '';
}

/** The URLs of a sitemap one by one: a text can have far more than a site. */
function* locationsOf(text: string): Generator<string> {
  for (const [, url = ''] of text.matchAll(/<loc>\s*([^<\s]{1,2048})\s*<\/loc>/g)) {
    yield url.replaceAll(/&(amp|lt|gt|quot|apos);/g, (_, name: string) => entities[name] ?? '');
  }
}

const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
};
