import { outsideSpans } from '../../core/report/trace.ts';
import { Failure } from '../../core/values/failure.ts';
import { type FetchPlan, type FetchRule, type PlannedSource, fetchPlan } from './fetch-plan.ts';
import { skipContent } from './mirror.ts';
import type { SourceDiallers } from './source-diallers.ts';
import type { SourceHealth } from './source-health.ts';
import type { SourceNames } from './source-names.ts';
import { preambleOf } from './source-request.ts';

/** A health check without an answer fails after its interval, but not before or after these. */
const checkTimeoutMsMin = 1_000;
const checkTimeoutMsMax = 5_000;

/** Rules whose sources get checks, and for how long after the last request to a page rule. */
const checkedPlansMax = 200;
const checkIdleMs = 600_000;

/** The dependencies of health checks. */
interface HealthCheckParts {
  readonly diallers: Pick<SourceDiallers, 'of'>;
  readonly names: Pick<SourceNames, 'serversOf'>;
  readonly health: Pick<SourceHealth, 'checked'>;
  readonly monotonicMs: () => number;
}

/** The checks of the sources of a plan. */
interface Watched {
  readonly plan: FetchPlan;
  readonly timer: NodeJS.Timeout;
  /** The origins that have not answered their last check yet. */
  readonly open: Set<string>;
  usedMs: number;
}

/**
 * Active health checks: sends a GET to each source of a plan with `health` at intervals, and notes
 * whether it is answered by 200 to 399. A source gets its next check when the last one has ended;
 * long content is not read. Those of a page rule begin with its first request and end
 * `checkIdleMs` after its last one; those of the ini file last until `close`.
 */
export class HealthChecks {
  readonly #parts: HealthCheckParts;
  /** By the id of the rule. */
  readonly #watched = new Map<string, Watched>();
  readonly #ended = new AbortController();

  constructor(parts: HealthCheckParts) {
    this.#parts = parts;
  }

  /** Checks the sources of a rule that has a health check, from now on. */
  watch(rule: FetchRule): void {
    const plan = fetchPlan(rule);
    if (plan.health === undefined || this.#ended.signal.aborted) return;
    const known = this.#watched.get(plan.id);
    if (known?.plan === plan) {
      known.usedMs = this.#parts.monotonicMs();
      return;
    }
    // The rule has changed.
    if (known !== undefined) this.#stop(known);
    else if (this.#watched.size >= checkedPlansMax) return;
    const { intervalMs } = plan.health;
    outsideSpans(() => {
      const timer = setInterval(() => {
        this.#tick(plan);
      }, intervalMs).unref();
      const watched = { plan, timer, open: new Set<string>(), usedMs: this.#parts.monotonicMs() };
      this.#watched.set(plan.id, watched);
      this.#checkAll(watched);
    });
  }

  /** Ends all checks. */
  close(): void {
    this.#ended.abort();
    for (const one of this.#watched.values()) this.#stop(one);
  }

  #tick(plan: FetchPlan): void {
    const known = this.#watched.get(plan.id);
    if (known === undefined) return;
    const isIdle = this.#parts.monotonicMs() - known.usedMs > checkIdleMs;
    if (isIdle && plan.ini === undefined) this.#stop(known);
    else this.#checkAll(known);
  }

  #stop({ plan, timer }: Watched): void {
    clearInterval(timer);
    this.#watched.delete(plan.id);
  }

  #checkAll({ plan, open }: Watched): void {
    void this.#parts.names.serversOf(plan).then(
      (servers) => {
        for (const source of servers) {
          if (open.has(source.server) || this.#ended.signal.aborted) continue;
          open.add(source.server);
          void this.#check(plan, source).finally(() => open.delete(source.server));
        }
      },
      // There is nothing to check while no name can be resolved.
      () => undefined,
    );
  }

  async #check(plan: FetchPlan, source: PlannedSource): Promise<void> {
    const { health } = plan;
    if (health === undefined) return;
    const { path, intervalMs } = health;
    const timeoutMs = Math.max(checkTimeoutMsMin, Math.min(intervalMs, checkTimeoutMsMax));
    const problem = await this.#problemOf(plan, source, { path, timeoutMs });
    if (!this.#ended.signal.aborted) this.#parts.health.checked(source.server, path, problem);
  }

  /** Why a source fails its check; undefined if it does not. */
  async #problemOf(
    plan: FetchPlan,
    { origin, server }: PlannedSource,
    { path, timeoutMs }: { readonly path: string; readonly timeoutMs: number },
  ): Promise<string | undefined> {
    const { protocol, hostname, host } = new URL(origin);
    const named = plan.host === 'client' || plan.host === 'source' ? host : plan.host;
    const late = AbortSignal.timeout(timeoutMs);
    try {
      const answer = await this.#parts.diallers.of(plan).send({
        origin: server,
        target: path,
        method: 'GET',
        fields: ['user-agent', 'Waymark (health check)', 'host', named],
        serverName: protocol === 'https:' ? hostname : undefined,
        body: undefined,
        ...preambleOf(plan, ''),
        timeoutMs,
        signal: AbortSignal.any([late, this.#ended.signal]),
      });
      void skipContent(answer);
      return answer.status < 400 ? undefined : `it answers ${answer.status}`;
    } catch (error) {
      if (late.aborted) return 'it does not answer in time';
      return error instanceof Failure && error.code === 'gateway_timeout'
        ? 'it does not answer in time'
        : 'no connection, or no answer in HTTP';
    }
  }
}
