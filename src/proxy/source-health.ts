import { sourcePauseMs, sourcePauseMsMax, sourcesKnownMax } from './limits.ts';
import { createLruCache } from '../model/lru-cache.ts';
import type { Log } from '../observability/log.ts';
import type { Metric, Sample } from '../observability/metrics.ts';
import { internalMetric } from './source-statistics.ts';

/** The state of one server, by its origin. */
interface SourceState {
  /** Requests that were sent and whose answer has not ended. */
  open: number;
  answered: number;
  failed: number;
  /** Pauses since its last complete answer. */
  pauses: number;
  /** Whether it was set aside and has not answered since. */
  isFailing: boolean;
  pausedAtMs: number;
  /** Infinity while one request probes whether it answers again. */
  pausedUntilMs: number;
}

/** One request to one server. */
export interface SourceAttempt {
  /** The server has begun to answer, with any status. */
  answered(): void;
  /** The answer is complete. */
  completed(): void;
  /** The server could not be reached, timed out, or broke off, also in the middle of its answer. */
  failed(): void;
  /** The request is over, with or without an answer. */
  ended(): void;
}

/** A server that is set aside now. */
interface SetAsideSource {
  readonly origin: string;
  /** Milliseconds until it is tried again; undefined while a request probes it. */
  readonly leftMs: number | undefined;
}

/**
 * Passive health checks of the servers that rules with several sources name. A server that fails is
 * set aside for a pause, twice as long each time; then one request probes whether it answers again.
 * The state survives a reload of the configuration.
 */
export class SourceHealth {
  readonly #monotonicMs: () => number;
  readonly #log: Log;
  readonly #servers = createLruCache<SourceState>(sourcesKnownMax);

  constructor({ monotonicMs, log }: { readonly monotonicMs: () => number; readonly log: Log }) {
    this.#monotonicMs = monotonicMs;
    this.#log = log;
  }

  /** The time that `loadOf` expects, in ms. */
  now(): number {
    return this.#monotonicMs();
  }

  /** The open requests of a server, and the time up to which it is set aside; `nowMs` if not. */
  loadOf(origin: string, nowMs: number): { readonly open: number; readonly restsUntilMs: number } {
    const { open, pausedUntilMs } = this.#server(origin);
    return { open, restsUntilMs: Math.max(pausedUntilMs, nowMs) };
  }

  /** Whether a server is set aside. */
  isSetAside(origin: string): boolean {
    return (this.#servers.get(origin)?.pausedUntilMs ?? 0) > this.#monotonicMs();
  }

  /**
   * Counts a request to a server. The first one after a pause is a probe: until it has an answer,
   * the server stays set aside for all other requests.
   */
  start(origin: string): SourceAttempt {
    const server = this.#server(origin);
    const startMs = this.#monotonicMs();
    const wasPaused = server.pausedUntilMs > startMs;
    const isProbe = !wasPaused && server.isFailing;
    if (isProbe) server.pausedUntilMs = Infinity;
    server.open += 1;
    return {
      answered: () => {
        server.answered += 1;
        if (!server.isFailing) return;
        this.#log.info({ server: origin }, 'source answers again');
        server.isFailing = false;
        server.pausedUntilMs = 0;
      },
      completed: () => {
        // A request that started before the last failure proves nothing about the time since.
        if (startMs >= server.pausedAtMs) server.pauses = 0;
      },
      failed: () => {
        server.failed += 1;
        // Of many open requests that break off together, only the first counts.
        if (!wasPaused && startMs > server.pausedAtMs) this.#setAside(origin, server);
      },
      ended: () => {
        server.open -= 1;
        // The client of the probe has left: the next request probes.
        if (isProbe && server.pausedUntilMs === Infinity)
          server.pausedUntilMs = this.#monotonicMs();
      },
    };
  }

  /** The servers among some that are set aside. */
  setAside(origins: readonly string[]): readonly SetAsideSource[] {
    const nowMs = this.#monotonicMs();
    return [...new Set(origins)].flatMap((origin) => {
      const leftMs = (this.#servers.peek(origin)?.pausedUntilMs ?? 0) - nowMs;
      if (leftMs <= 0) return [];
      return [{ origin, leftMs: leftMs === Infinity ? undefined : leftMs }];
    });
  }

  metrics(): readonly Metric[] {
    const servers = [...this.#servers.entries()];
    const samples = (value: (server: SourceState) => number): readonly Sample[] =>
      servers.map(([source, server]) => ({ labels: { source }, value: value(server) }));
    const nowMs = this.#monotonicMs();
    const setAside = samples(({ pausedUntilMs: restUntilMs }) => (restUntilMs > nowMs ? 1 : 0));
    return [
      {
        name: 'waymark_fetch_source_answers_total',
        type: 'counter',
        help: 'Answers of a source, for rules with several sources.',
        samples: samples(({ answered }) => answered),
      },
      {
        name: 'waymark_fetch_source_failures_total',
        type: 'counter',
        help: 'Requests to a source that failed, for rules with several sources.',
        samples: samples(({ failed }) => failed),
      },
      {
        name: 'waymark_fetch_source_requests',
        type: 'gauge',
        help: 'Open requests to a source, for rules with several sources.',
        samples: samples(({ open }) => open),
      },
      {
        name: 'waymark_fetch_source_set_aside',
        type: 'gauge',
        help: 'Whether a source is set aside after a failure (1) or not (0).',
        samples: setAside,
      },
      internalMetric('set_aside', setAside),
    ];
  }

  #setAside(origin: string, server: SourceState): void {
    server.pauses += 1;
    server.isFailing = true;
    server.pausedAtMs = this.#monotonicMs();
    server.pausedUntilMs = server.pausedAtMs + pauseMs(server.pauses);
    const details = { server: origin, pauseMs: pauseMs(server.pauses) };
    this.#log.warn(details, 'source failed; set aside for a pause');
  }

  #server(origin: string): SourceState {
    let server = this.#servers.get(origin);
    if (server === undefined) {
      server = {
        open: 0,
        answered: 0,
        failed: 0,
        pauses: 0,
        isFailing: false,
        pausedAtMs: -Infinity,
        pausedUntilMs: 0,
      };
      this.#servers.set(origin, server);
    }
    return server;
  }
}

function pauseMs(rests: number): number {
  return Math.min(sourcePauseMs * 2 ** (rests - 1), sourcePauseMsMax);
}
