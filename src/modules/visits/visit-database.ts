import { createHash } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Database, RootDatabase } from 'lmdb';
import { eventLoop } from '../../core/fair/turns.ts';
import { openEnvironment } from '../../core/log/databases.ts';
import { transact, transactSync } from '../../core/log/environment.ts';
import { inspectDataFile, prepareFolder } from '../../core/log/folder/data-folder.ts';
import { writeErrorOf } from '../../core/log/folder/full-disk.ts';
import { visitNamesMax } from '../../core/log/limits.ts';
import {
  type BreadcrumbDimension,
  type CountShape,
  type PageDimension,
  type SiteDimension,
  type VisitCounts,
  addCounts,
  breadcrumbDimensions,
  countsText,
  noVisits,
  pageDimensions,
  parseCounts,
  siteDimensions,
} from './visit-counts.ts';

/** Breadcrumbs that have counts of their own on one day; visits of others are counted together. */
export const visitKeysPerDayMax = 10_000;

/** Names of each dimension (sources, countries, referring hosts …) of a page and day. */
export const pageNamesMax = 20;

/** Pages that have counts of their own on one day: the most visited ones. */
export const pagesPerDayMax = 1_000;

/** Entries that one transaction deletes. */
const visitDeletesMax = 5_000;

/** Entries that a listing of all breadcrumbs reads before it lets other work run. */
const visitRowsReadMax = 1_000;

/** What is counted: a breadcrumb by path and origin of its rule, or a page by its own. */
interface VisitedKey {
  readonly path: string;
  readonly origin: string;
}

/** The counts of one breadcrumb, or of one page, on one day. */
export interface DayVisits<D extends string = BreadcrumbDimension> extends VisitedKey {
  /** In UTC: `2026-11-24`. */
  readonly day: string;
  readonly counts: VisitCounts<D>;
}

/** The days of a query, both included, in UTC. */
export interface DaySpan {
  readonly from: string;
  readonly until: string;
}

/** The key of the counts of all breadcrumbs or pages above the limit, and of the whole server. */
export const otherKeys: VisitedKey = { path: '', origin: '' };

/** The folder of the database in the data folder. */
const visitsFolder = 'visits';

/**
 * Prepares the folder of the visit counts before any process opens it. Moves a damaged database to
 * `visits-damaged`, and returns the reason; the counts then start at zero. Rejects with
 * `unavailable` if the folder cannot be written.
 */
export async function prepareVisitDatabase(data: string): Promise<unknown> {
  const folder = join(data, visitsFolder);
  await prepareFolder(folder);
  try {
    await inspectDataFile(folder);
    return undefined;
  } catch (error) {
    await rm(`${folder}-damaged`, { recursive: true, force: true });
    await rename(folder, `${folder}-damaged`);
    await prepareFolder(folder);
    return error;
  }
}

/** The visit counts of a data folder; several processes may have them open and add to them. */
export class VisitDatabase {
  readonly #environment: RootDatabase;
  readonly breadcrumbs: VisitTable<BreadcrumbDimension>;
  readonly pages: VisitTable<PageDimension>;
  /** All requests of a day together, under `otherKeys`. */
  readonly site: VisitTable<SiteDimension>;

  /** Opens the database of a data folder that prepareVisitDatabase has prepared. */
  constructor(data: string) {
    const environment = openEnvironment(join(data, visitsFolder));
    this.#environment = environment;
    [this.breadcrumbs, this.pages, this.site] = transactSync(environment, () => [
      new VisitTable(environment, ['visits', 'days'], {
        ...{ dimensions: breadcrumbDimensions, namesMax: visitNamesMax },
        keysMax: visitKeysPerDayMax,
      }),
      new VisitTable(environment, ['page_visits', 'page_days'], {
        ...{ dimensions: pageDimensions, namesMax: pageNamesMax },
        ...{ keysMax: pagesPerDayMax, keepsMostVisited: true },
      }),
      new VisitTable(environment, ['site_visits', 'site_days'], {
        ...{ dimensions: siteDimensions, namesMax: visitNamesMax, keysMax: 1 },
      }),
    ]);
  }

  close(): Promise<void> {
    return this.#environment.close();
  }
}

/** How a table counts, and how many breadcrumbs or pages of a day have counts of their own. */
interface TableShape<D extends string> extends CountShape<D> {
  readonly keysMax: number;
  /** Whether the most visited keys have counts of their own, and not those that came first. */
  readonly keepsMostVisited?: boolean;
}

/** The counts of one kind by day. */
export class VisitTable<D extends string> {
  readonly #environment: RootDatabase;
  /** See entryKey → path, origin and counts, a line each. */
  readonly #visits: Database<string, string>;
  /** Day → number of its entries. */
  readonly #days: Database<number, string>;
  readonly shape: TableShape<D>;

  /** Opens the two databases of a table; to be called in a transaction. */
  constructor(
    environment: RootDatabase,
    [visits, days]: readonly [string, string],
    shape: TableShape<D>,
  ) {
    this.#environment = environment;
    this.shape = shape;
    this.#visits = environment.openDB<string, string>(visits, { encoding: 'string' });
    this.#days = environment.openDB<number, string>(days, { encoding: 'json' });
  }

  /** Adds counts, all in one transaction; rejects if they cannot be written. */
  add(all: readonly DayVisits<D>[]): Promise<void> {
    return this.#write(() => {
      for (const one of all) this.#addOne(one);
      for (const day of new Set(all.map((one) => one.day))) this.#prune(day);
    });
  }

  /** The counts of a breadcrumb or page by day, at one origin or at all. */
  *ofKey(path: string, origin: string | undefined, span: DaySpan): Iterable<DayVisits<D>> {
    for (const { key: day } of this.#days.getRange({ start: span.from, end: `${span.until}~` })) {
      const prefix = `${day} ${digestOf(path)} `;
      for (const { value } of this.#visits.getRange({ start: prefix, end: `${prefix}~` })) {
        const found = this.#parse(day, value);
        if (origin === undefined || found.origin === origin) yield found;
      }
    }
  }

  /** All counts by day; lets other work run at intervals. */
  async *ofAll(span: DaySpan): AsyncIterable<DayVisits<D>> {
    const turns = eventLoop.turns('visits');
    let start = span.from;
    for (;;) {
      await turns.next();
      const end = `${span.until}~`;
      const slice = [...this.#visits.getRange({ start, end, limit: visitRowsReadMax })];
      for (const { key, value } of slice) yield this.#parse(key.slice(0, dayCharacters), value);
      const last = slice.at(-1);
      if (last === undefined || slice.length < visitRowsReadMax) return;
      start = `${last.key}!`;
    }
  }

  /** Deletes the counts of all days before one. */
  async deleteBefore(day: string): Promise<void> {
    for (;;) {
      const old = [...this.#visits.getKeys({ end: day, limit: visitDeletesMax })];
      const days = [...this.#days.getKeys({ end: day })];
      if (old.length === 0 && days.length === 0) return;
      await this.#write(() => {
        for (const key of old) this.#visits.removeSync(key);
        if (old.length < visitDeletesMax) for (const one of days) this.#days.removeSync(one);
      });
    }
  }

  #addOne({ day, path, origin, counts }: DayVisits<D>): void {
    const known = this.#visits.get(entryKey(day, { path, origin }));
    const entries = this.#days.get(day) ?? 0;
    const { keysMax, keepsMostVisited = false } = this.shape;
    const isOther = known === undefined && entries >= keysMax && !keepsMostVisited;
    this.#addTo(day, isOther ? otherKeys : { path, origin }, counts);
  }

  #addTo(day: string, key: VisitedKey, counts: VisitCounts<D>): void {
    const stored = this.#visits.get(entryKey(day, key));
    if (stored === undefined) this.#days.putSync(day, (this.#days.get(day) ?? 0) + 1);
    const sum = stored === undefined ? noVisits(this.shape) : this.#parse(day, stored).counts;
    addCounts(sum, counts, this.shape);
    const text = `${JSON.stringify([key.path, key.origin])}\n${countsText(sum, this.shape)}`;
    this.#visits.putSync(entryKey(day, key), text);
  }

  /**
   * Sums the least visited keys of a day that has too many. It leaves room for new ones, so that
   * the next transactions need not do it again.
   */
  #prune(day: string): void {
    const { keysMax, keepsMostVisited = false } = this.shape;
    if (!keepsMostVisited || (this.#days.get(day) ?? 0) <= keysMax) return;
    const all = [...this.#visits.getRange({ start: day, end: `${day}~` })]
      .map(({ key, value }) => ({ key, ...this.#parse(day, value) }))
      .filter(({ path }) => path !== otherKeys.path)
      .toSorted((one, other) => visitsOf(other) - visitsOf(one));
    const least = all.slice(Math.floor(keysMax * keptShare));
    const sum = noVisits(this.shape);
    for (const { key, counts } of least) {
      addCounts(sum, counts, this.shape);
      this.#visits.removeSync(key);
    }
    this.#days.putSync(day, (this.#days.get(day) ?? 0) - least.length);
    this.#addTo(day, otherKeys, sum);
  }

  #parse(day: string, text: string): DayVisits<D> {
    const end = text.indexOf('\n');
    const [path, origin] = JSON.parse(text.slice(0, end)) as [string, string];
    return { day, path, origin, counts: parseCounts(text.slice(end + 1), this.shape) };
  }

  async #write(change: () => void): Promise<void> {
    try {
      await transact(this.#environment, change);
    } catch (error) {
      throw await writeErrorOf(error);
    }
  }
}

function visitsOf({ counts }: DayVisits<string>): number {
  return counts.visits + counts.robots;
}

/** The share of the keys of a day that are left when there were too many. */
const keptShare = 0.8;
const dayCharacters = '2026-11-24'.length;

/** Sorts by day, then by path; digests, because a path may be longer than a key of LMDB. */
function entryKey(day: string, { path, origin }: VisitedKey): string {
  return `${day} ${digestOf(path)} ${digestOf(origin)}`;
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}
