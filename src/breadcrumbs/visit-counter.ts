import type { Config } from '../config/config.ts';
import type { Fields } from '../http/request.ts';
import type { Visitor } from '../model/visitor.ts';
import { singleMetric, type Metric } from '../observability/metrics.ts';
import { VisitBuffer, type VisitBufferParts } from '../store/visits/visit-buffer.ts';
import { addName } from '../store/visits/visit-counts.ts';
import { VisitDatabase, type DaySpan, type DayVisits } from '../store/visits/visit-database.ts';
import { visitRefererCharactersMax } from './limits.ts';
import type { ResolvedBreadcrumb } from './resolve.ts';

/** Counts one visit of each breadcrumb that a request has followed. */
export type CountVisit = (
  resolved: Pick<ResolvedBreadcrumb, 'hops'>,
  visit: { readonly fields: Fields; readonly visitor: Visitor },
) => void;

/** Opens the counter of a data folder. Throws the errors of lmdb. */
export function openVisitCounter(
  { server, stats }: Pick<Config, 'server' | 'stats'>,
  { now, log }: Pick<VisitBufferParts, 'now' | 'log'>,
): VisitCounter {
  const database = new VisitDatabase(server.data);
  return new VisitCounter({ database, retentionMs: stats.retentionMs, now, log });
}

const nothing = '(none)';
const unknown = '(unknown)';

/**
 * Counts the visits of breadcrumbs (docs/design/rendering.md#visit-counts): in memory, and every
 * few seconds added to the database, which has no address, user, cookie or path of a visitor.
 */
export class VisitCounter {
  readonly #buffer: VisitBuffer;
  #visits = 0;
  #robots = 0;

  constructor(parts: VisitBufferParts) {
    this.#buffer = new VisitBuffer(parts);
  }

  /** How long counts are stored; 0 if nothing is counted. */
  get retentionMs(): number {
    return this.#buffer.retentionMs;
  }

  /** The written counts of a breadcrumb by day, at one origin of its rules or at all. */
  ofKey(path: string, origin: string | undefined, span: DaySpan): Iterable<DayVisits> {
    return this.#buffer.database.ofKey(path, origin, span);
  }

  /** The written counts of all breadcrumbs by day. */
  ofAll(span: DaySpan): AsyncIterable<DayVisits> {
    return this.#buffer.database.ofAll(span);
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
    if (!this.#buffer.isCounting || isPrefetch(visit.fields)) return;
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

  /** Writes the counts in memory, and closes the database. */
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
    if (!this.#buffer.isCounting) return;
    const devices = visitor.devices();
    const isRobot = devices.has('bot');
    const country = visitor.location().country ?? unknown;
    const device =
      (['mobile', 'tablet', 'desktop'] as const).find((one) => devices.has(one)) ?? unknown;
    const host = referringHost(fields.referer);
    for (const { stored, branch } of hops) {
      const counts = this.#buffer.countsAt(visitor.nowMs, stored.rule);
      if (isRobot) {
        counts.robots += 1;
        continue;
      }
      counts.visits += 1;
      addName(counts.branches, branch.name, 1);
      addName(counts.countries, country, 1);
      addName(counts.devices, device, 1);
      addName(counts.hosts, host, 1);
    }
    if (isRobot) this.#robots += 1;
    else this.#visits += 1;
  }
}

/**
 * Whether a browser requests a page that it may never show (Fetch §Sec-Purpose, and the fields of
 * older browsers).
 */
function isPrefetch(fields: Fields): boolean {
  const purpose = fields['sec-purpose'] ?? fields.purpose ?? fields['x-moz'];
  return purpose !== undefined && /^\s*(?:prefetch|preview)/i.test(purpose);
}

/** The host in a Referer (RFC 9110 §10.1.3), without its port. */
function referringHost(referer: string | undefined): string {
  if (referer === undefined || referer === '') return nothing;
  // Only the host is of interest, and a URL that is cut off still has it.
  const url = URL.parse(referer.slice(0, visitRefererCharactersMax));
  const isWeb = url?.protocol === 'http:' || url?.protocol === 'https:';
  return isWeb && url.hostname !== '' ? url.hostname.slice(0, 253) : unknown;
}
