import { type Fields, isPrefetch, prefetchPurpose } from '../../core/http/request.ts';
import type { Visitor } from '../../core/http/visitor.ts';
import type { Log } from '../../core/report/log.ts';
import { type Metric, singleMetric } from '../../core/report/metrics.ts';
import { VisitBuffer, dayOf, referringHost } from '../visits/visit-buffer.ts';
import { type BreadcrumbDimension, addName } from '../visits/visit-counts.ts';
import type { DaySpan, DayVisits, VisitTable } from '../visits/visit-database.ts';
import type { ResolvedBreadcrumb } from './resolve.ts';

/** Breadcrumbs with counts in memory that are not written yet, and pages. */
export const visitKeysBufferedMax = 10_000;

/** Counts one visit of each breadcrumb that a request has followed. */
export type CountVisit = (
  resolved: Pick<ResolvedBreadcrumb, 'hops'>,
  visit: { readonly fields: Fields; readonly visitor: Visitor },
) => void;

interface CounterParts {
  readonly table: VisitTable<BreadcrumbDimension>;
  /** How long counts are stored; 0 counts nothing and deletes all stored counts. */
  readonly retentionMs: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
}

const unknown = '(unknown)';

/**
 * Counts the visits of breadcrumbs (docs/design/rendering.md#visit-counts): in memory, and every
 * few seconds added to the database, which has no address, user, cookie or path of a visitor.
 */
export class VisitCounter {
  readonly #table: VisitTable<BreadcrumbDimension>;
  readonly #buffer: VisitBuffer<BreadcrumbDimension>;
  #visits = 0;
  #robots = 0;

  constructor(parts: CounterParts) {
    this.#table = parts.table;
    this.#buffer = new VisitBuffer({ ...parts, keysMax: visitKeysBufferedMax });
  }

  /** How long counts are stored; 0 if nothing is counted. */
  get retentionMs(): number {
    return this.#buffer.retentionMs;
  }

  /** The written counts of a breadcrumb by day, at one origin of its rules or at all. */
  ofKey(path: string, origin: string | undefined, span: DaySpan): Iterable<DayVisits> {
    return this.#table.ofKey(path, origin, span);
  }

  /** The written counts of all breadcrumbs by day. */
  ofAll(span: DaySpan): AsyncIterable<DayVisits> {
    return this.#table.ofAll(span);
  }

  /** Counts from now on as a changed configuration says. */
  retain(retentionMs: number): void {
    this.#buffer.retain(retentionMs);
  }

  /** Deletes counts that are too old. */
  start(): void {
    void this.flush();
  }

  /** See CountVisit. Takes no time of the request if the visitor's country must be loaded first. */
  readonly count: CountVisit = (resolved, visit) => {
    if (this.retentionMs === 0 || isPrefetch(prefetchPurpose(visit.fields))) return;
    const loading = visit.visitor.prepare({ user: false, location: true });
    if (loading === undefined) this.#countNow(resolved, visit);
    else {
      void loading.then(() => {
        this.#countNow(resolved, visit);
      });
    }
  };

  /** Writes the counts in memory. Never rejects: counts that cannot be written stay in memory. */
  flush(): Promise<void> {
    return this.#buffer.flush();
  }

  /** Writes the counts in memory, and counts no more. */
  close(): Promise<void> {
    return this.#buffer.close();
  }

  metrics(): readonly Metric[] {
    return [
      singleMetric('counter', 'waymark_breadcrumb_visits_total', {
        help: 'Visits of breadcrumbs, without those of robots.',
        value: this.#visits,
      }),
      singleMetric('counter', 'waymark_breadcrumb_robot_visits_total', {
        help: 'Visits of breadcrumbs by robots.',
        value: this.#robots,
      }),
    ];
  }

  #countNow(
    { hops }: Parameters<CountVisit>[0],
    { fields, visitor }: Parameters<CountVisit>[1],
  ): void {
    if (this.#buffer.isClosed) return;
    const { shape } = this.#table;
    const devices = visitor.devices();
    const isRobot = devices.has('bot');
    const day = dayOf(visitor.nowMs);
    const country = visitor.location().country ?? unknown;
    const device =
      (['mobile', 'tablet', 'desktop'] as const).find((one) => devices.has(one)) ?? unknown;
    const host = referringHost(fields.referer);
    for (const { stored, branch } of hops) {
      const counts = this.#buffer.countsOf(day, stored.rule);
      if (isRobot) {
        counts.robots += 1;
        continue;
      }
      counts.visits += 1;
      addName(counts.branches, branch.name, shape);
      addName(counts.countries, country, shape);
      addName(counts.devices, device, shape);
      addName(counts.hosts, host, shape);
    }
    if (isRobot) this.#robots += 1;
    else this.#visits += 1;
  }
}
