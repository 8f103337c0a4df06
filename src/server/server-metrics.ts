import {
  metricsText,
  processMetrics,
  singleMetric,
  type GatherMetrics,
  type Metric,
} from '../observability/metrics.ts';
import { RequestMetrics } from '../observability/request-metrics.ts';
import type { Store, StoreCounts } from '../store/store.ts';
import type { Server } from './server.ts';

/** The metrics of a process that serves. */
export class ServerMetrics {
  readonly requests = new RequestMetrics();
  readonly #store: Pick<Store, 'counts'>;
  readonly #server: () => Server | undefined;
  readonly #gather: GatherMetrics;
  readonly #others: (() => readonly Metric[])[] = [];

  /** `gather` asks all processes, this one too; without it, this one is the only one. */
  constructor({
    store,
    server,
    gather = () => Promise.resolve([{ metrics: this.metrics() }]),
  }: {
    readonly store: Pick<Store, 'counts'>;
    readonly server: () => Server | undefined;
    readonly gather: GatherMetrics | undefined;
  }) {
    this.#store = store;
    this.#server = server;
    this.#gather = gather;
  }

  /** Has another part of the process tell its metrics too. */
  add(collect: () => readonly Metric[]): void {
    this.#others.push(collect);
  }

  /** Those of this process. */
  metrics(): readonly Metric[] {
    return [
      ...this.requests.metrics(),
      ...(this.#server()?.metrics() ?? []),
      ...storeMetrics(this.#store.counts()),
      ...this.#others.flatMap((collect) => collect()),
      ...processMetrics(),
    ];
  }

  /** Those of all processes, as Prometheus reads them. */
  async text(): Promise<string> {
    return metricsText(await this.#gather());
  }
}

/** The metrics of a store. */
function storeMetrics({ seq, rules, keys, bytes }: StoreCounts): readonly Metric[] {
  return [
    singleMetric('gauge', 'waymark_store_seq', {
      help: 'Position of the newest change in the log.',
      value: seq,
    }),
    singleMetric('gauge', 'waymark_store_rules', { help: 'Page rules.', value: rules }),
    singleMetric('gauge', 'waymark_store_keys', { help: 'API keys.', value: keys }),
    singleMetric('gauge', 'waymark_store_bytes', { help: 'Size of the data file.', value: bytes }),
  ];
}
