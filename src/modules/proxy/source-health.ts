import type { Log } from '../../core/report/log.ts';
import type { Metric, Sample } from '../../core/report/metrics.ts';
import { createLruCache } from '../../core/values/lru-cache.ts';
import { sourcesKnownMax } from './limits.ts';
import { internalMetric } from './source-statistics.ts';

/** How long a source that has failed is set aside at first, and, doubled each time, at most. */
export const sourcePauseMs = 1_000;
export const sourcePauseMsMax = 60_000;

/** Failed checks in a row after which other sources come first. */
const checkFailuresMax = 2;

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

/** The results of one health check of one server. */
interface CheckState {
  readonly origin: string;
  /** Failed checks in a row. */
  failures: number;
  /** Why the last one failed; undefined if it did not. */
  problem: string | undefined;
}

/** How ready a server is for a request. */
export interface SourceLoad {
  readonly open: number;
  /** 0 if it is ready, 1 if its health check fails, 2 if it is set aside. */
  readonly rank: 0 | 1 | 2;
  /** When its pause ends; 0 without one. */
  readonly pausedUntilMs: number;
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
 * The health of the servers that rules name. Passive: a server of several that fails is set aside
 * for a pause, twice as long each time; then one request probes whether it answers again. Active:
 * a server whose health check fails comes after the others. Requests count for more than checks:
 * passing a check ends no pause, and a server that fails its check gets requests if there is no
 * other. The state survives a reload of the configuration.
 */
export class SourceHealth {
  readonly #monotonicMs: () => number;
  readonly #log: Log;
  readonly #servers = createLruCache<SourceState>(sourcesKnownMax);
  /** By origin and path of the check. */
  readonly #checks = createLruCache<CheckState>(sourcesKnownMax);

  constructor({ monotonicMs, log }: { readonly monotonicMs: () => number; readonly log: Log }) {
    this.#monotonicMs = monotonicMs;
    this.#log = log;
  }

  /** The time that `loadOf` expects, in ms. */
  now(): number {
    return this.#monotonicMs();
  }

  /** How ready a server is, by its requests and by the health check with a path. */
  loadOf(origin: string, checkPath: string | undefined, nowMs: number): SourceLoad {
    const { open, pausedUntilMs } = this.#server(origin);
    if (pausedUntilMs > nowMs) return { open, rank: 2, pausedUntilMs };
    const isFailing = this.checkProblem(origin, checkPath) !== undefined;
    return { open, rank: isFailing ? 1 : 0, pausedUntilMs: 0 };
  }

  /** Whether a server is set aside, or its health check fails. */
  isPassedOver(origin: string, checkPath: string | undefined): boolean {
    return this.loadOf(origin, checkPath, this.#monotonicMs()).rank > 0;
  }

  /** Notes the result of a health check: why it failed, or undefined. */
  checked(origin: string, path: string, problem: string | undefined): void {
    const key = `${origin} ${path}`;
    const check = this.#checks.get(key) ?? { origin, failures: 0, problem: undefined };
    this.#checks.set(key, check);
    const wasFailing = check.failures >= checkFailuresMax;
    check.failures = problem === undefined ? 0 : check.failures + 1;
    check.problem = problem;
    const details = { server: origin, target: path };
    if (check.failures === checkFailuresMax) {
      this.#log.warn({ ...details, reason: problem }, 'health check fails');
    } else if (wasFailing && problem === undefined) {
      this.#log.info(details, 'health check passes again');
    }
  }

  /** Why the health check of a server fails; undefined if it passes, or there is none. */
  checkProblem(origin: string, path: string | undefined): string | undefined {
    if (path === undefined) return undefined;
    const check = this.#checks.get(`${origin} ${path}`);
    return check !== undefined && check.failures >= checkFailuresMax ? check.problem : undefined;
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
    const setAside = samples(({ pausedUntilMs }) => (pausedUntilMs > nowMs ? 1 : 0));
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
      ...this.#checkMetrics(),
    ];
  }

  #checkMetrics(): readonly Metric[] {
    const checks = [...this.#checks.entries()];
    const isFailing = ({ failures }: CheckState): boolean => failures >= checkFailuresMax;
    return [
      {
        name: 'waymark_fetch_source_check',
        type: 'gauge',
        help: 'Whether a source passes its health check (1) or not (0).',
        samples: checks.map(([key, check]) => ({
          labels: { source: check.origin, check: key.slice(check.origin.length + 1) },
          value: isFailing(check) ? 0 : 1,
        })),
      },
      internalMetric(
        'checks',
        checks.map(([, check]) => ({
          labels: { source: check.origin, problem: check.problem ?? '' },
          value: isFailing(check) ? 1 : 0,
        })),
      ),
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

function pauseMs(pauses: number): number {
  return Math.min(sourcePauseMs * 2 ** (pauses - 1), sourcePauseMsMax);
}
