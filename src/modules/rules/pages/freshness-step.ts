import type { Reply } from '../../../core/http/reply.ts';
import { limitFreshness } from '../../../core/http/representation/limited-freshness.ts';
import type { RequestTarget } from '../../../core/http/request.ts';
import type { Step } from '../../../core/pipeline/pipeline.ts';
import { whenReady } from '../../../core/values/when-ready.ts';
import { candidatesFor } from '../matcher.ts';
import type { RuleReader } from '../valid-rules.ts';

/**
 * Caches may use an answer until another page rule begins or ceases to answer its path. That
 * holds for a path inside the server, too: the path of the request does not show that one.
 */
export function freshnessStep(rules: RuleReader): Step {
  return {
    at: 'freshness',
    handle(request, next) {
      // Asked first: a rule may cease to answer while its answer is made.
      if (!rules.hasComing()) return next(request);
      const endMs = nextChangeMs(rules, request, rules.nowMs());
      const limited = (reply: Reply): Reply =>
        endMs === undefined ? reply : limitFreshness(reply, { endMs, nowMs: rules.nowMs() });
      return whenReady(next(request), (reply) => reply && limited(reply));
    },
  };
}

/** The next time after another one at which another page rule may answer; undefined for none. */
function nextChangeMs(
  rules: RuleReader,
  target: RequestTarget,
  afterMs: number,
): number | undefined {
  const times = candidatesFor(rules.anyTime, target).flatMap(({ validity }) => {
    if (validity === undefined || validity === 'waits') return [];
    const { fromMs = afterMs, untilMs = afterMs } = validity;
    return [fromMs, untilMs].filter((one) => one > afterMs);
  });
  return times.length === 0 ? undefined : Math.min(...times);
}
