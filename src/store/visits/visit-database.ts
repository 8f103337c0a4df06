import { createHash } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import type { Database, RootDatabase } from 'lmdb';
import { openEnvironment } from '../databases.ts';
import { inspectDataFile, prepareFolder } from '../folder/data-folder.ts';
import { writeErrorOf } from '../folder/full-disk.ts';
import { transact, transactSync } from '../environment.ts';
import { visitDeletesMax, visitKeysPerDayMax, visitRowsReadMax } from '../limits.ts';
import { addCounts, countsText, noVisits, parseCounts, type VisitCounts } from './visit-counts.ts';

/** The path and origin of a breadcrumb's rule; both are empty for all above the limit. */
interface VisitedKey {
  readonly path: string;
  readonly origin: string;
}

/** The counts of one breadcrumb, or page, on one day. */
export interface DayVisits extends VisitedKey {
  /** In UTC: `2026-11-24`. */
  readonly day: string;
  readonly counts: VisitCounts;
}

/** The days of a query, both included, in UTC. */
export interface DaySpan {
  readonly from: string;
  readonly until: string;
}

/** The key of the counts of all breadcrumbs above the limit. */
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

/** The names of the databases of what is counted. */
const databaseNames = {
  breadcrumbs: ['visits', 'days'],
  pages: ['page visits', 'page days'],
} as const;

/** The visit counts of a data folder; several processes may have them open and add to them. */
export class VisitDatabase {
  readonly #environment: RootDatabase;
  /** See entryKey → path, origin and counts, a line each. */
  readonly #visits: Database<string, string>;
  /** Day → number of its entries. */
  readonly #days: Database<number, string>;

  /** Opens the database of a data folder that prepareVisitDatabase has prepared. */
  constructor(data: string, counted: keyof typeof databaseNames = 'breadcrumbs') {
    const [visits, days] = databaseNames[counted];
    const environment = openEnvironment(join(data, visitsFolder));
    this.#environment = environment;
    [this.#visits, this.#days] = transactSync(environment, () => [
      environment.openDB<string, string>(visits, { encoding: 'string' }),
      environment.openDB<number, string>(days, { encoding: 'json' }),
    ]);
  }

  /** Adds counts, all in one transaction; rejects if they cannot be written. */
  add(all: readonly DayVisits[]): Promise<void> {
    return this.#write(() => {
      for (const one of all) this.#addOne(one);
    });
  }

  /** The counts of a breadcrumb by day, at one origin of its rules or at all. */
  *ofKey(path: string, origin: string | undefined, span: DaySpan): Iterable<DayVisits> {
    for (const { key: day } of this.#days.getRange({ start: span.from, end: `${span.until}~` })) {
      const prefix = `${day} ${digestOf(path)} `;
      for (const { value } of this.#visits.getRange({ start: prefix, end: `${prefix}~` })) {
        const found = parseEntry(day, value);
        if (origin === undefined || found.origin === origin) yield found;
      }
    }
  }

  /** The counts of all breadcrumbs by day; lets other work run at intervals. */
  async *ofAll(span: DaySpan): AsyncIterable<DayVisits> {
    let start = span.from;
    for (;;) {
      const end = `${span.until}~`;
      const slice = [...this.#visits.getRange({ start, end, limit: visitRowsReadMax })];
      for (const { key, value } of slice) yield parseEntry(key.slice(0, dayCharacters), value);
      const last = slice.at(-1);
      if (last === undefined || slice.length < visitRowsReadMax) return;
      start = `${last.key}!`;
      await turn();
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

  close(): Promise<void> {
    return this.#environment.close();
  }

  #addOne({ day, path, origin, counts }: DayVisits): void {
    const known = this.#visits.get(entryKey(day, { path, origin }));
    const entries = this.#days.get(day) ?? 0;
    const isOther = known === undefined && entries >= visitKeysPerDayMax;
    const key = isOther ? otherKeys : { path, origin };
    const stored = isOther ? this.#visits.get(entryKey(day, key)) : known;
    if (stored === undefined) this.#days.putSync(day, entries + 1);
    const sum = stored === undefined ? noVisits() : parseEntry(day, stored).counts;
    addCounts(sum, counts);
    this.#visits.putSync(entryKey(day, key), entryText(key, sum));
  }

  async #write(change: () => void): Promise<void> {
    try {
      await transact(this.#environment, change);
    } catch (error) {
      throw await writeErrorOf(error);
    }
  }
}

const dayCharacters = '2026-11-24'.length;

/** Sorts by day, then by path; digests, because a path may be longer than a key of LMDB. */
function entryKey(day: string, { path, origin }: VisitedKey): string {
  return `${day} ${digestOf(path)} ${digestOf(origin)}`;
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

function entryText({ path, origin }: VisitedKey, counts: VisitCounts): string {
  return `${JSON.stringify([path, origin])}\n${countsText(counts)}`;
}

function parseEntry(day: string, text: string): DayVisits {
  const end = text.indexOf('\n');
  const [path, origin] = JSON.parse(text.slice(0, end)) as [string, string];
  return { day, path, origin, counts: parseCounts(text.slice(end + 1)) };
}
