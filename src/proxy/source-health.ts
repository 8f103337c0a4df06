import { sourcePauseMs, sourcePauseMsMax, sourcesKnownMax } from './limits.ts';
import { remembered } from '../model/remembered.ts';
import type { Log } from '../observability/log.ts';
import type { Metric, Sample } from '../observability/metrics.ts';
import type { SourceTarget } from './fetch-plan.ts';

/** What is known of a server, by its origin. */
interface SourceState {
  /** Requests that have been sent and whose answer is not at its end. */
  open: number;
  answered: number;
  failed: number;
  /** Pauses since an answer of it last came to its end. */
  pauses: number;
  /** Whether it has not answered since it was last set aside. */
  isFailing: boolean;
  pausedAtMs: number;
  /** Infinity while one request finds out whether it answers again. */
  pausedUntilMs: number;
}

/** One request to one server. */
export interface SourceAttempt {
  /** The server has begun to answer, whatever it was. */
  answered(): void;
  /** The whole answer has come. */
  completed(): void;
  /** The server could not be reached, broke off, be it in its answer, or kept silent. */
  failed(): void;
  /** Nothing more comes of it. */
  ended(): void;
}

/** A server that is set aside, as it stands at a moment. */
interface SetAsideSource {
  readonly origin: string;
  /** Milliseconds until it is tried again; undefined while it is. */
  readonly leftMs: number | undefined;
}

/**
 * How the servers have answered that rules with several sources name: found out by the requests
 * themselves. A server that fails is set aside for a pause, twice as long each time; after it, one
 * request finds out whether the server answers again. Lives as long as the process.
 */
export class SourceHealth {
  readonly #monotonicMs: () => number;
  readonly #log: Log;
  readonly #servers = remembered<SourceState>(sourcesKnownMax);
  #turn = 0;

  constructor({ monotonicMs, log }: { readonly monotonicMs: () => number; readonly log: Log }) {
    this.#monotonicMs = monotonicMs;
    this.#log = log;
  }

  /**
   * Ways in the order in which to try them: those to the servers with the least to do first, in
   * turn where that is the same; those to servers that are set aside last, by the end of their
   * pause.
   */
  order(ways: readonly SourceTarget[]): readonly SourceTarget[] {
    const nowMs = this.#monotonicMs();
    const first = this.#turn % ways.length;
    this.#turn += 1;
    return [...ways.slice(first), ...ways.slice(0, first)]
      .map((way) => {
        const { open, pausedUntilMs: restUntilMs } = this.#server(way.source.origin);
        return { way, open, restUntilMs: Math.max(restUntilMs, nowMs) };
      })
      .sort((a, b) => a.restUntilMs - b.restUntilMs || a.open - b.open)
      .map(({ way }) => way);
  }

  /** Whether a server is set aside. */
  isSetAside(origin: string): boolean {
    return (this.#servers.get(origin)?.pausedUntilMs ?? 0) > this.#monotonicMs();
  }

  /** Notes that a server is being asked; after a pause, until the first answer, by nobody else. */
  start(origin: string): SourceAttempt {
    const server = this.#server(origin);
    const startMs = this.#monotonicMs();
    const wasResting = server.pausedUntilMs > startMs;
    const isProbe = !wasResting && server.isFailing;
    if (isProbe) server.pausedUntilMs = Infinity;
    server.open += 1;
    return {
      answered: () => {
        server.answered += 1;
        if (!server.isFailing) return;
        this.#log.info({ server: origin }, 'a source answers again');
        server.isFailing = false;
        server.pausedUntilMs = 0;
      },
      completed: () => {
        // One who asked before the last failure says nothing of the time since.
        if (startMs >= server.pausedAtMs) server.pauses = 0;
      },
      failed: () => {
        server.failed += 1;
        // Of many requests that meet the same failure, one counts.
        if (!wasResting && startMs > server.pausedAtMs) this.#setAside(origin, server);
      },
      ended: () => {
        server.open -= 1;
        // Whoever asked has gone: another one finds out.
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
    return [
      {
        name: 'waymark_fetch_source_answers_total',
        type: 'counter',
        help: 'Answers of a server that a rule with several sources names.',
        samples: samples(({ answered }) => answered),
      },
      {
        name: 'waymark_fetch_source_failures_total',
        type: 'counter',
        help: 'Requests to such a server that it did not answer, or not to the end.',
        samples: samples(({ failed }) => failed),
      },
      {
        name: 'waymark_fetch_source_requests',
        type: 'gauge',
        help: 'Requests to such a server that are under way.',
        samples: samples(({ open }) => open),
      },
      {
        name: 'waymark_fetch_source_set_aside',
        type: 'gauge',
        help: 'Whether such a server is set aside after a failure.',
        samples: samples(({ pausedUntilMs: restUntilMs }) => (restUntilMs > nowMs ? 1 : 0)),
      },
    ];
  }

  #setAside(origin: string, server: SourceState): void {
    server.pauses += 1;
    server.isFailing = true;
    server.pausedAtMs = this.#monotonicMs();
    server.pausedUntilMs = server.pausedAtMs + pauseMs(server.pauses);
    const told = { server: origin, pauseMs: pauseMs(server.pauses) };
    this.#log.warn(told, 'a source has failed and is set aside');
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
