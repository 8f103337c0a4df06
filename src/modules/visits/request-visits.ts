import { preferredLanguage } from '../../core/http/representation/negotiation.ts';
import { isPrefetch } from '../../core/http/request.ts';
import type { AccessEntry, RequestPlace } from '../../core/report/access-entry.ts';
import type { Log } from '../../core/report/log.ts';
import { type Metric, singleMetric } from '../../core/report/metrics.ts';
import { createDeviceDetector } from '../visitors/device.ts';
import {
  devicesRememberedMax,
  languageFieldCharactersMax,
  languagesRememberedMax,
} from '../visitors/limits.ts';
import { VisitBuffer, dayOf, referringHost } from './visit-buffer.ts';
import {
  type PageDimension,
  type SiteDimension,
  type VisitCounts,
  addCounts,
  addName,
  addNames,
  pageDimensions,
} from './visit-counts.ts';
import { type DaySpan, type DayVisits, type VisitDatabase, otherKeys } from './visit-database.ts';

const pagesBufferedMax = 2_000;
const referersRememberedMax = 2_048;

/** Characters of the host of a Referer, and of the path of a page, that counts of visits have. */
const referringHostCharactersMax = 64;
const countedPathCharactersMax = 512;

/** Pages, and names of their dimensions, that are counted before they are summed. */
const talliedNamesMax = 20_000;

/** Answers between two writes whose visits a process counts one by one … */
export const requestsCountedMax = 2_000;

/** … and, above that, how many answers one counted visit stands for. */
export const sampledRequests = 16;

/** Requests that wait to be counted together. */
const waitingRequestsMax = 128;

/** The time from which on an answer counts as slow. */
const slowAnswerMs = 1_000;

/** Characters of the longest field whose result is in memory for counts of visits. */
const rememberedCharactersMax = 512;

interface Place {
  readonly origin: string;
  readonly path: string;
}

const dayMs = 86_400_000;
const none = '(none)';
const unknown = '(unknown)';
const sameSite = '(this site)';

/** The answers of one source. */
interface SourceTally {
  /** The kind of source, for answers that the cache had no part in. */
  readonly kind: string;
  answers: number;
  failed: number;
  slow: number;
}

/** The visits of a page, and those of each name of a dimension. */
interface PageTally {
  visits: number;
  robots: number;
  readonly names: Readonly<Record<PageDimension, Map<string, { count: number }>>>;
}

/**
 * What was counted since the last write, in a form that costs a request little; it is added to the
 * buffers when they are written.
 */
interface Tally {
  /** The day, from its first to its last millisecond since 1970. */
  readonly firstMs: number;
  readonly lastMs: number;
  /** Answers by the first digit of their status. */
  readonly classes: number[];
  readonly sources: Map<string, SourceTally>;
  /** By origin and path. */
  readonly pages: Map<string, Map<string, PageTally>>;
  /** Pages and their names, which have a limit together. */
  entries: number;
}

/**
 * Counts the requests of a server by the fields of its access log
 * (docs/design/visits.md): in memory, and every few seconds added to the database, which has no
 * address, user, cookie or query.
 */
export class RequestVisits {
  readonly #database: Pick<VisitDatabase, 'pages' | 'site'>;
  readonly #pages: VisitBuffer<PageDimension>;
  readonly #site: VisitBuffer<SiteDimension>;
  readonly #deviceOf = remembered(deviceReader(), {
    max: devicesRememberedMax,
    charactersMax: rememberedCharactersMax,
  });

  readonly #languageOf = remembered(languageIn, {
    max: languagesRememberedMax,
    charactersMax: rememberedCharactersMax,
  });

  readonly #hostOf = remembered(
    (referer) => referringHost(referer).slice(0, referringHostCharactersMax),
    { max: referersRememberedMax, charactersMax: rememberedCharactersMax },
  );

  #waiting: { readonly entry: AccessEntry; readonly asked: RequestPlace; weight: number }[] = [];
  /** Requests since the last write. */
  #requests = 0;
  #tally: Tally | undefined;
  #visits = 0;
  #robots = 0;

  constructor(
    database: Pick<VisitDatabase, 'pages' | 'site'>,
    parts: { readonly retentionMs: number; readonly now: () => number; readonly log: Log },
  ) {
    const { pages, site } = database;
    this.#database = database;
    const collect = (): void => {
      this.#countWaiting();
      this.#requests = 0;
      this.#collect();
    };
    this.#pages = new VisitBuffer({ ...parts, table: pages, keysMax: pagesBufferedMax, collect });
    this.#site = new VisitBuffer({ ...parts, table: site, keysMax: 1, collect });
  }

  /** How long counts are stored; 0 if nothing is counted. */
  get retentionMs(): number {
    return this.#site.retentionMs;
  }

  /** The written counts of a page by day, at one origin or at all. */
  ofPage(
    path: string,
    origin: string | undefined,
    span: DaySpan,
  ): Iterable<DayVisits<PageDimension>> {
    return this.#database.pages.ofKey(path.slice(0, countedPathCharactersMax), origin, span);
  }

  /** The written counts of all pages by day. */
  ofPages(span: DaySpan): AsyncIterable<DayVisits<PageDimension>> {
    return this.#database.pages.ofAll(span);
  }

  /** The written counts of all requests by day. */
  ofSite(span: DaySpan): AsyncIterable<DayVisits<SiteDimension>> {
    return this.#database.site.ofAll(span);
  }

  /** Counts from now on as a changed configuration says. */
  retain(retentionMs: number): void {
    this.#pages.retain(retentionMs);
    this.#site.retain(retentionMs);
  }

  /** Deletes counts that are too old. */
  start(): void {
    void this.flush();
  }

  /** Writes the counts in memory. Never rejects: counts that cannot be written stay in memory. */
  async flush(): Promise<void> {
    await Promise.all([this.#pages.flush(), this.#site.flush()]);
  }

  /** Writes the counts in memory, and counts no more. */
  async close(): Promise<void> {
    await Promise.all([this.#pages.close(), this.#site.close()]);
  }

  metrics(): readonly Metric[] {
    this.#countWaiting();
    return [
      singleMetric('counter', 'waymark_page_visits_total', {
        help: 'Visits of pages, without those of robots.',
        value: this.#visits,
      }),
      singleMetric('counter', 'waymark_page_robot_visits_total', {
        help: 'Visits of pages by robots.',
        value: this.#robots,
      }),
    ];
  }

  /** Counts an answered request, a moment later. */
  add(entry: AccessEntry, asked: RequestPlace): void {
    if (this.retentionMs === 0 || this.#site.isClosed) return;
    this.#requests += 1;
    const isSampled = this.#requests > requestsCountedMax;
    const isShown = entry.status < 400 && entry.reason === undefined;
    if (isSampled && isShown && this.#requests % sampledRequests !== 0) {
      countAnswer(this.#tallyAt(asked.nowMs), entry);
      return;
    }
    this.#waiting.push({ entry, asked, weight: isSampled ? sampledRequests : 1 });
    if (this.#waiting.length >= waitingRequestsMax) this.#countWaiting();
    else if (this.#waiting.length === 1) this.#site.schedule();
  }

  /** Counts many requests at a time: the caches of a processor then have code and maps at hand. */
  #countWaiting(): void {
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    this.#waiting = [];
    for (const { entry, asked, weight } of waiting) this.#countRequest(entry, asked, weight);
  }

  #countRequest(
    entry: AccessEntry,
    { place, country = unknown, nowMs }: RequestPlace,
    weight: number,
  ): void {
    const tally = this.#tallyAt(nowMs);
    const { kind } = countAnswer(tally, entry);
    const { status } = entry;
    if (status >= 400 ? isRefusal(entry) : entry.reason !== undefined) {
      const { refused } = this.#site.countsOf(dayOf(nowMs), otherKeys);
      addName(refused, refusalName(entry), this.#database.site.shape);
    } else if (place !== undefined && isPageRequest(entry)) {
      this.#countPage(entry, { place, country, tally, kind, weight });
    }
    if (tally.entries > talliedNamesMax) this.#collect();
  }

  #countPage(
    entry: AccessEntry,
    {
      place,
      country,
      tally,
      kind,
      weight,
    }: {
      readonly place: Place;
      readonly country: string;
      readonly tally: Tally;
      readonly kind: string;
      /** How many visits this one stands for. */
      readonly weight: number;
    },
  ): void {
    const { accept } = entry;
    const isOpened = accept.includes('text/html');
    // Robots need not say that they want a page; scripts of pages accept anything, too.
    if (!isOpened && accept !== '' && accept !== '*/*') return;
    const device = this.#deviceOf(entry.userAgent);
    if (!isOpened && device !== robot) return;
    const page = pageTally(tally, place);
    if (device === robot) {
      this.#robots += weight;
      page.robots += weight;
      return;
    }
    this.#visits += weight;
    page.visits += weight;
    const { names } = page;
    const add = (of: Map<string, { count: number }>, name: string): void => {
      count(tally, of, name, weight);
    };
    add(names.sources, cachedKind(entry.cache) ?? kind);
    add(names.countries, country);
    add(names.languages, this.#languageOf(entry.acceptLanguage));
    add(names.devices, device);
    add(names.hosts, this.#hostOf(entry.referer));
  }

  #tallyAt(nowMs: number): Tally {
    const known = this.#tally;
    if (known !== undefined && nowMs >= known.firstMs && nowMs <= known.lastMs) return known;
    this.#collect();
    const firstMs = Math.floor(nowMs / dayMs) * dayMs;
    const tally = {
      firstMs,
      lastMs: firstMs + dayMs - 1,
      classes: classes.map(() => 0),
      sources: new Map(),
      pages: new Map(),
      entries: 0,
    };
    this.#tally = tally;
    // Starts their timers.
    this.#site.countsOf(dayOf(nowMs), otherKeys);
    return tally;
  }

  /** Adds what was counted to the buffers. */
  #collect(): void {
    const tally = this.#tally;
    if (tally === undefined) return;
    this.#tally = undefined;
    const day = dayOf(tally.firstMs);
    const site = this.#site.countsOf(day, otherKeys);
    const { shape } = this.#database.site;
    for (const [at, name] of classes.entries()) {
      const answers = tally.classes[at] ?? 0;
      if (answers > 0) addName(site.statuses, name, shape, answers);
    }
    for (const [source, { answers, failed, slow }] of tally.sources) {
      addName(site.answers, source, shape, answers);
      if (failed > 0) addName(site.failed, source, shape, failed);
      if (slow > 0) addName(site.slow, source, shape, slow);
    }
    for (const [origin, pages] of tally.pages) {
      for (const [path, page] of pages) {
        const counts = countsOf(page, origin);
        addCounts(this.#pages.countsOf(day, { origin, path }), counts, this.#database.pages.shape);
        site.visits += counts.visits;
        site.robots += counts.robots;
        for (const one of pageDimensions) addNames(site[one], counts[one], shape.namesMax);
        if (counts.visits > 0) addName(site.origins, origin, shape, counts.visits);
      }
    }
  }
}

/** Counts an answer by its status and source; returns the counts of the source. */
function countAnswer(tally: Tally, { status, source, durationMs }: AccessEntry): SourceTally {
  const at = Math.floor(status / 100);
  tally.classes[at] = (tally.classes[at] ?? 0) + 1;
  const ofSource = sourceTally(tally, source);
  ofSource.answers += 1;
  if (durationMs >= slowAnswerMs) ofSource.slow += 1;
  if (status >= 500) ofSource.failed += 1;
  return ofSource;
}

function sourceTally({ sources }: Tally, source: string): SourceTally {
  let found = sources.get(source);
  if (found === undefined) {
    found = { kind: kindOf(source), answers: 0, failed: 0, slow: 0 };
    sources.set(source, found);
  }
  return found;
}

function pageTally(tally: Tally, { origin, path }: Place): PageTally {
  const counted = path.slice(0, countedPathCharactersMax);
  let pages = tally.pages.get(origin);
  if (pages === undefined) {
    pages = new Map();
    tally.pages.set(flat(origin), pages);
  }
  let page = pages.get(counted);
  if (page === undefined) {
    const names = {
      sources: new Map(),
      countries: new Map(),
      languages: new Map(),
      devices: new Map(),
      hosts: new Map(),
    };
    page = { visits: 0, robots: 0, names };
    pages.set(flat(counted), page);
    tally.entries += 1;
  }
  return page;
}

function count(
  tally: Tally,
  names: Map<string, { count: number }>,
  name: string,
  weight: number,
): void {
  const known = names.get(name);
  if (known !== undefined) known.count += weight;
  else {
    names.set(name, { count: weight });
    tally.entries += 1;
  }
}

/** The counts of a page, whose own host is no referring one. */
function countsOf(
  { visits, robots, names }: PageTally,
  origin: string,
): VisitCounts<PageDimension> {
  const own = (name: string): string => (hasHost(origin, name) ? sameSite : name);
  const plain = (counts: Map<string, { count: number }>): Map<string, number> =>
    new Map([...counts].map(([name, one]) => [name, one.count]));
  return {
    visits,
    robots,
    sources: plain(names.sources),
    countries: plain(names.countries),
    languages: plain(names.languages),
    devices: plain(names.devices),
    hosts: new Map([...names.hosts].map(([name, one]) => [own(name), one.count])),
  };
}

const classes = ['', '1xx', '2xx', '3xx', '4xx', '5xx'];
const robot = 'bot';

/** Whether a request may be one for a page that somebody opens, by its answer and method. */
function isPageRequest({ method, status, source, purpose, reason }: AccessEntry): boolean {
  const isShown = status === 304 || (status >= 200 && status < 300 && status !== 206);
  const isOfSite = source !== 'svc1' && reason === undefined;
  return isShown && isOfSite && method === 'GET' && !isPrefetch(purpose);
}

/** Whether an answer keeps a client out, and not only this request. */
function isRefusal({ status, source }: AccessEntry): boolean {
  const isByRule = source.startsWith('access:') || source.startsWith('rate:');
  return isByRule || status === 401 || status === 403 || status === 429;
}

/** What refused a request, with which status, and why, separated by spaces. */
function refusalName({ source, status, reason = '' }: AccessEntry): string {
  return `${source} ${status} ${reason}`;
}

function kindOf(source: string): string {
  if (source.startsWith('proxy:')) return 'proxied';
  if (source.startsWith('disk:')) return 'disk';
  return source.startsWith('rule:') ? 'stored' : 'other';
}

/** The kind of source of an answer; undefined if the cache had no part in it. */
function cachedKind(cache: AccessEntry['cache']): string | undefined {
  if (cache === undefined) return undefined;
  return cache === 'hit' || cache === 'stale' || cache === 'revalidated' ? 'cache' : 'proxied';
}

/** Whether an origin is of a host: `https://one.example:8443` of `one.example`. */
function hasHost(origin: string, host: string): boolean {
  const start = origin.indexOf('://') + '://'.length;
  const next = origin.charAt(start + host.length);
  return origin.startsWith(host, start) && (next === '' || next === ':');
}

/** The device of a User-Agent: `mobile`, `tablet`, `desktop`, `bot` or `(unknown)`. */
function deviceReader(): (agent: string) => string {
  const devicesOf = createDeviceDetector();
  return (agent) => {
    const devices = devicesOf({ 'user-agent': agent });
    const forms = [robot, 'mobile', 'tablet', 'desktop'] as const;
    return forms.find((one) => devices.has(one)) ?? unknown;
  };
}

/** The preferred language of an Accept-Language field, without its region. */
function languageIn(field: string): string {
  if (field === '') return none;
  const range = preferredLanguage(field.slice(0, languageFieldCharactersMax));
  return /^[a-z]{2,3}(?=-|$)/.exec(range ?? '')?.[0] ?? unknown;
}

/**
 * A function that remembers its results, of up to `max` texts of up to `charactersMax`: for texts
 * that most requests bring along again.
 */
function remembered(
  read: (text: string) => string,
  { max, charactersMax }: { readonly max: number; readonly charactersMax: number },
): (text: string) => string {
  const known = new Map<string, string>();
  return (text) => {
    let value = known.get(text);
    if (value === undefined) {
      value = read(text);
      if (text.length > charactersMax) return value;
      // Cheaper for each request than an order of use, and the usual texts are soon back.
      if (known.size >= max) known.clear();
      known.set(flat(text), value);
    }
    return value;
  };
}

/** A copy of a text: V8 keeps the whole head of a request for the sake of a part of it. */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}
