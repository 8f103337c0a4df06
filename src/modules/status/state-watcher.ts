import { hash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { SharedLimit, type Sharer } from '../../core/fair/shared-limit.ts';
import type { Store } from '../../core/log/store.ts';
import type { GatherMetrics } from '../../core/report/metrics.ts';
import type { CacheAdmin } from '../cache/cache-admin.ts';
import type { CertificateState, ConfigurationState } from './server-status.ts';
import { deliveriesPart } from '../webhooks/log/delivery-log.ts';
import { loginSessionsPart } from '../login/stored-sessions.ts';
import { nodesPart } from '../nodes/log/node-states.ts';
import { outboxPart } from '../nodes/log/outbox-entries.ts';
import { storedRules } from '../rules/log/family.ts';

/** Clients of a process that watch the state (server.subscribe). */
export const stateReadersMax = 64;

/** How often a process compares the state while a client watches it. */
const stateCompareMs = 1_000;

/** The parts of the server's state that clients can watch. */
export const stateTopics = [
  'changes',
  'times',
  'series',
  'sources',
  'nodes',
  'deliveries',
  'keys',
  'certificates',
  'configuration',
  'cache',
] as const;

/** A part of the server's state that clients can watch. */
export type StateTopic = (typeof stateTopics)[number];

/** Functions that return JSON which differs after each change of a topic. */
type StateVersions = Readonly<Record<StateTopic, () => unknown>>;

/** The digest of the present version of a topic; computed once for all readers. */
type VersionOf = (topic: StateTopic) => Promise<string>;

/**
 * Tells readers which topics have changed. Once a second, it compares the versions of topics that
 * have a reader; without readers, it does nothing.
 */
export class StateWatcher {
  readonly #versions: StateVersions;
  readonly #everyMs: number;
  readonly #readers = new SharedLimit({
    what: 'clients that watch the state',
    limit: 'live_state',
    held: 'long',
    max: stateReadersMax,
  });
  #round: Promise<VersionOf> | undefined;

  constructor(versions: StateVersions, everyMs = stateCompareMs) {
    this.#versions = versions;
    this.#everyMs = everyMs;
  }

  /** The number of readers. */
  get size(): number {
    return this.#readers.size;
  }

  /**
   * Resolves when the present versions are known. The function that it resolves to makes the
   * changes since then: topics that have changed together, until the signal aborts. A slow reader
   * gets several changes of a topic as one. Rejects with `rate_limited` if the client has too many
   * readers already, and `unavailable` if all clients together have.
   */
  async watch(
    topics: readonly StateTopic[],
    client: Sharer,
  ): Promise<(signal: AbortSignal) => AsyncGenerator<readonly StateTopic[], void, undefined>> {
    this.#readers.require(client);
    const known = new Map<StateTopic, string>();
    const versionOf = this.#currentVersions();
    for (const topic of topics) known.set(topic, await versionOf(topic));
    return (signal) => this.#changes(known, client, signal);
  }

  async *#changes(
    known: Map<StateTopic, string>,
    client: Sharer,
    signal: AbortSignal,
  ): AsyncGenerator<readonly StateTopic[], void, undefined> {
    this.#readers.take(client, 1);
    try {
      for (;;) {
        const versionOf = await this.#nextRound();
        const changed: StateTopic[] = [];
        for (const [topic, before] of known) {
          if (signal.aborted) return;
          const version = await versionOf(topic);
          if (version !== before) changed.push(topic);
          known.set(topic, version);
        }
        if (signal.aborted) return;
        if (changed.length > 0) yield changed;
      }
    } finally {
      this.#readers.giveBack(client, 1);
    }
  }

  #nextRound(): Promise<VersionOf> {
    this.#round ??= delay(this.#everyMs, undefined, { ref: false }).then(() => {
      this.#round = undefined;
      return this.#currentVersions();
    });
    return this.#round;
  }

  #currentVersions(): VersionOf {
    const computed = new Map<StateTopic, Promise<string>>();
    return (topic) => {
      const version = computed.get(topic) ?? this.#version(topic);
      computed.set(topic, version);
      return version;
    };
  }

  async #version(topic: StateTopic): Promise<string> {
    return hash('sha1', JSON.stringify([await this.#versions[topic]()]));
  }
}

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
    times: () => store.of(storedRules).nextRuleTimeMs(now()) ?? null,
    series: seriesChangedMs,
    sources: async () => {
      const metrics = (await gatherMetrics()).flatMap((one) => one.metrics);
      return metrics.filter(({ name }) => name.startsWith('source_'));
    },
    nodes: () => [
      store.part(nodesPart).all(),
      store.part(nodesPart).link(),
      store.part(outboxPart).counts(),
      store.shared?.state(),
      // node.list says how many changes each node lacks.
      store.seq(),
    ],
    // The deliverer stores its clock with each attempt.
    deliveries: () => [store.part(deliveriesPart).cursor(), store.part(deliveriesPart).clockMs()],
    keys: () => [store.keys(), store.part(loginSessionsPart).changes()],
    certificates,
    configuration: status,
    cache: () => cache.counts(),
  };
}
