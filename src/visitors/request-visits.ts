import type { AccessEntry } from '../observability/access-entry.ts';
import { preferredLanguage } from '../http/negotiation.ts';
import { isPrefetch } from '../http/prefetch.ts';
import type { Log } from '../observability/log.ts';
import { singleMetric, type Metric } from '../observability/metrics.ts';
import { pagesBufferedMax } from '../store/limits.ts';
import { dayOf, VisitBuffer } from '../store/visits/visit-buffer.ts';
import {
  addName,
  type PageDimension,
  type SiteDimension,
  type VisitCounts,
} from '../store/visits/visit-counts.ts';
import {
  otherKeys,
  type DaySpan,
  type DayVisits,
  type VisitDatabase,
} from '../store/visits/visit-database.ts';
import { createDeviceDetector } from './device.ts';
import {
  countedPathCharactersMax,
  devicesRememberedMax,
  languageFieldCharactersMax,
  languagesRememberedMax,
  referersRememberedMax,
  referringHostCharactersMax,
  rememberedCharactersMax,
  slowAnswerMs,
} from './limits.ts';
import { referringHost } from './referring-host.ts';

/** What the access log has no field for. */
export interface RequestPlace {
  /** The origin and canonical path; undefined for a request that could not be read. */
  readonly place: { readonly origin: string; readonly path: string } | undefined;
  /** ISO 3166-1; undefined if it is not known. */
  readonly country: string | undefined;
  /** When the request arrived, in milliseconds since 1970. */
  readonly nowMs: number;
}

const dayMs = 86_400_000;
const none = '(none)';
const unknown = '(unknown)';
const sameSite = '(this site)';

/** The day that is being counted, with its counts in memory. */
interface Today {
  readonly endMs: number;
  readonly day: string;
  readonly site: VisitCounts<SiteDimension>;
  /** The counts of pages by origin and path. */
  readonly pages: Map<string, Map<string, VisitCounts<PageDimension>>>;
  /** The number of those pages. */
  size: number;
  readonly writes: number;
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
  readonly #deviceOf: (agent: string) => string = remembered(devicesRememberedMax, deviceReader());
  readonly #languageOf: (field: string) => string = remembered(languagesRememberedMax, languageIn);
  readonly #hostOf: (referer: string) => string = remembered(referersRememberedMax, (referer) =>
    referringHost(referer).slice(0, referringHostCharactersMax),
  );

  #today: Today | undefined;
  #visits = 0;
  #robots = 0;

  constructor(
    database: Pick<VisitDatabase, 'pages' | 'site'>,
    parts: { readonly retentionMs: number; readonly now: () => number; readonly log: Log },
  ) {
    const { pages, site } = database;
    this.#database = database;
    this.#pages = new VisitBuffer({ ...parts, table: pages, keysMax: pagesBufferedMax });
    this.#site = new VisitBuffer({ ...parts, table: site, keysMax: 1 });
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

  /** Counts an answered request. */
  add(entry: AccessEntry, { place, country, nowMs }: RequestPlace): void {
    if (this.retentionMs === 0 || this.#site.isClosed) return;
    const today = this.#dayAt(nowMs);
    const { site } = today;
    const { shape } = this.#database.site;
    const { status, source, durationMs } = entry;
    addName(site.statuses, classes[Math.floor(status / 100)] ?? unknown, shape);
    addName(site.answers, source, shape);
    if (durationMs >= slowAnswerMs) addName(site.slow, source, shape);
    if (status >= 400) {
      if (status >= 500) addName(site.failed, source, shape);
      if (isRefusal(entry)) addName(site.refused, refusalName(entry), shape);
    } else if (place !== undefined) {
      if (isPageRequest(entry)) this.#countPage(entry, { place, country, today });
      else if (entry.reason !== undefined) addName(site.refused, refusalName(entry), shape);
    }
  }

  #countPage(
    entry: AccessEntry,
    {
      place,
      country = unknown,
      today,
    }: {
      readonly place: NonNullable<RequestPlace['place']>;
      readonly country: string | undefined;
      readonly today: Today;
    },
  ): void {
    const { accept } = entry;
    const isOpened = accept.includes('text/html');
    // Robots need not say that they want a page; scripts of pages accept anything, too.
    if (!isOpened && accept !== '' && accept !== '*/*') return;
    const device = this.#deviceOf(entry.userAgent);
    const isRobot = device === robot;
    if (!isOpened && !isRobot) return;
    const page = this.#pageOf(today, place);
    if (isRobot) {
      this.#robots += 1;
      page.robots += 1;
      today.site.robots += 1;
      return;
    }
    this.#visits += 1;
    const host = this.#hostOf(entry.referer);
    const names = {
      sources: kindOf(entry),
      countries: country,
      languages: this.#languageOf(entry.acceptLanguage),
      devices: device,
      hosts: host !== none && hasHost(place.origin, host) ? sameSite : host,
    };
    count(page, names, this.#database.pages.shape);
    count(today.site, names, this.#database.site.shape);
    addName(today.site.origins, place.origin, this.#database.site.shape);
  }

  #dayAt(nowMs: number): Today {
    const today = this.#today;
    // Counts that were written are out of use, of pages and of the site alike.
    const writes = this.#site.writes + this.#pages.writes;
    const isSame = today?.writes === writes && nowMs < today.endMs && nowMs >= today.endMs - dayMs;
    if (isSame) return today;
    const day = dayOf(nowMs);
    const next = {
      endMs: (Math.floor(nowMs / dayMs) + 1) * dayMs,
      day,
      site: this.#site.countsOf(day, otherKeys),
      pages: new Map(),
      size: 0,
      writes,
    };
    this.#today = next;
    return next;
  }

  #pageOf(today: Today, { origin, path }: { origin: string; path: string }) {
    const counted = path.slice(0, countedPathCharactersMax);
    const known = today.pages.get(origin)?.get(counted);
    if (known !== undefined) return known;
    const counts = this.#pages.countsOf(today.day, { origin, path: counted });
    if (today.size < pagesBufferedMax) {
      today.size += 1;
      const ofOrigin = today.pages.get(origin);
      if (ofOrigin === undefined) today.pages.set(origin, new Map([[counted, counts]]));
      else ofOrigin.set(counted, counts);
    }
    return counts;
  }
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

/** The kind of the source that an answer came from. */
function kindOf({ source, cache }: AccessEntry): string {
  if (cache === 'hit' || cache === 'stale' || cache === 'revalidated') return 'cache';
  if (cache !== undefined || source.startsWith('proxy:')) return 'proxied';
  if (source.startsWith('disk:')) return 'disk';
  return source.startsWith('rule:') ? 'stored' : 'other';
}

/** Adds one visit, and its name in each dimension of pages. */
function count(
  counts: VisitCounts<PageDimension>,
  names: Readonly<Record<PageDimension, string>>,
  shape: { readonly namesMax: number },
): void {
  counts.visits += 1;
  addName(counts.sources, names.sources, shape);
  addName(counts.countries, names.countries, shape);
  addName(counts.languages, names.languages, shape);
  addName(counts.devices, names.devices, shape);
  addName(counts.hosts, names.hosts, shape);
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

/** A function that remembers its latest results, of up to `max` texts. */
function remembered(max: number, read: (text: string) => string): (text: string) => string {
  const known = new Map<string, string>();
  return (text) => {
    let value = known.get(text);
    if (value === undefined) {
      value = read(text);
      // Cheaper for each request than an order of use, and the usual texts are soon back.
      if (known.size >= max) known.clear();
      if (text.length <= rememberedCharactersMax) known.set(text, value);
    }
    return value;
  };
}
