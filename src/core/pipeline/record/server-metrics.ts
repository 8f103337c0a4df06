import {
  type BackgroundTasks,
  type ProcessState,
  type TaskState,
  joinedStates,
} from '../../background/tasks.ts';
import { metricsText, processMetrics, singleMetric, type Metric } from '../../report/metrics.ts';
import { RequestMetrics } from '../../report/request-metrics.ts';
import type { Store, StoreCounts } from '../../log/store.ts';
import type { SharedLimits } from '../../fair/shared-limits.ts';

interface MetricsSource {
  metrics(): readonly Metric[];
}

/** The metrics of a process that serves. */
export class ServerMetrics {
  readonly requests = new RequestMetrics();
  readonly #store: Pick<Store, 'counts'>;
  readonly #server: () => MetricsSource | undefined;
  readonly #tasks: Pick<BackgroundTasks, 'states'>;
  readonly #gather: (() => Promise<readonly ProcessState[]>) | undefined;
  readonly #others: (() => readonly Metric[])[] = [];

  /** `gather` collects the metrics of all processes; undefined if there is only this one. */
  constructor({
    store,
    server,
    tasks,
    gather,
  }: {
    readonly store: Pick<Store, 'counts'>;
    readonly server: () => MetricsSource | undefined;
    readonly tasks: Pick<BackgroundTasks, 'states'>;
    readonly gather: (() => Promise<readonly ProcessState[]>) | undefined;
  }) {
    this.#store = store;
    this.#server = server;
    this.#tasks = tasks;
    this.#gather = gather;
  }

  /** Adds the metrics of another part of the process. */
  add(collect: () => readonly Metric[]): void {
    this.#others.push(collect);
  }

  /** The metrics of this process. */
  metrics(): readonly Metric[] {
    return [
      ...this.requests.metrics(),
      ...(this.#server()?.metrics() ?? []),
      ...storeMetrics(this.#store.counts()),
      ...this.#others.flatMap((collect) => collect()),
      ...processMetrics(),
    ];
  }

  /** The metrics and tasks of this process. */
  own(): ProcessState {
    return { metrics: this.metrics(), tasks: this.#tasks.states() };
  }

  /** The metrics and tasks of all processes. */
  async gather(): Promise<readonly ProcessState[]> {
    return (await this.#gather?.()) ?? [this.own()];
  }

  /** The tasks of all processes. */
  async tasks(): Promise<readonly TaskState[]> {
    if (this.#gather === undefined) return this.#tasks.states();
    return joinedStates((await this.#gather()).flatMap(({ tasks }) => tasks));
  }

  /** The metrics of all processes in the text format of Prometheus. */
  async text(): Promise<string> {
    return metricsText(await this.gather());
  }
}

/** The metrics of a store. */
function storeMetrics({ seq, rules, keys, rows, bytes }: StoreCounts): readonly Metric[] {
  return [
    singleMetric('gauge', 'waymark_store_seq', {
      help: 'Position of the newest change in the log.',
      value: seq,
    }),
    singleMetric('gauge', 'waymark_store_rules', { help: 'Page rules.', value: rules }),
    singleMetric('gauge', 'waymark_store_keys', { help: 'API keys.', value: keys }),
    singleMetric('gauge', 'waymark_store_rows', { help: 'Rows of tables.', value: rows }),
    singleMetric('gauge', 'waymark_store_bytes', { help: 'Size of the data file.', value: bytes }),
  ];
}

/** The current numbers of a port, and the limits that clients share. */
interface PortState {
  readonly shared: SharedLimits;
  readonly connections: number;
  readonly requests: number;
  readonly websockets: number;
  readonly tunnels: number;
}

/** The metrics of the connections of a port. */
export function openMetrics({
  connections,
  requests,
  websockets,
  tunnels,
  shared,
}: PortState): readonly Metric[] {
  return [
    singleMetric('gauge', 'waymark_connections', {
      help: 'Open connections, including websockets.',
      value: connections,
    }),
    singleMetric('gauge', 'waymark_requests_in_flight', {
      help: 'Requests over HTTP without a complete response.',
      value: requests,
    }),
    singleMetric('gauge', 'waymark_websockets', {
      help: 'Open websockets.',
      value: websockets,
    }),
    singleMetric('gauge', 'waymark_tunnels', {
      help: 'Open websockets to sources.',
      value: tunnels,
    }),
    singleMetric('gauge', 'waymark_subscriptions', {
      help: 'Subscriptions of websockets.',
      value: shared.subscriptions.size,
    }),
    singleMetric('gauge', 'waymark_requests_held_bytes', {
      help: 'Bytes in memory of requests without a response.',
      value: shared.requests.size,
    }),
    singleMetric('gauge', 'waymark_unread_answers_bytes', {
      help: 'Bytes in memory of large responses that clients have not read yet.',
      value: shared.unread.size,
    }),
  ];
}
