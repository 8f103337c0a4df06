import type { CacheAdmin } from '../cache/cache-admin.ts';
import type { GatherMetrics } from '../../core/report/metrics.ts';
import type { StateVersions } from './state-watcher.ts';
import type { Store } from '../../core/log/store.ts';
import type { CertificateState, ConfigurationState } from './server-status.ts';

/** The parts with a state that clients can watch. */
interface WatchedParts {
  readonly store: Store;
  readonly cache: Pick<CacheAdmin, 'counts'>;
  readonly gatherMetrics: GatherMetrics;
  readonly status: () => ConfigurationState;
  readonly certificates: () => Promise<readonly CertificateState[]>;
  /** When the time series got its newest point. */
  readonly seriesChangedMs: () => Promise<number>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * The versions that server.subscribe compares for each topic: cheap reads that differ after each
 * change.
 */
export function stateVersions(parts: WatchedParts): StateVersions {
  const { store, cache, gatherMetrics, status, certificates, seriesChangedMs, now } = parts;
  return {
    changes: () => store.seq(),
    // At each of these times, the next one is another.
    times: () => store.nextRuleTimeMs(now()) ?? null,
    series: seriesChangedMs,
    sources: async () => {
      const metrics = (await gatherMetrics()).flatMap((one) => one.metrics);
      return metrics.filter(({ name }) => name.startsWith('source_'));
    },
    nodes: () => [
      store.nodes.all(),
      store.nodes.link(),
      store.outbox.counts(),
      store.shared?.state(),
      // node.list says how many changes each node lacks.
      store.seq(),
    ],
    // The deliverer stores its clock with each attempt.
    deliveries: () => [store.deliveries.cursor(), store.deliveries.clockMs()],
    keys: () => [store.keys(), store.loginSessions.changes()],
    certificates,
    configuration: status,
    cache: () => cache.counts(),
  };
}
