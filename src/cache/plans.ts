import { createHash } from 'node:crypto';
import { fetchPlan, type FetchPlan, type FetchRule } from '../proxy/fetch-source.ts';

/** A content.fetch rule as the cache knows it. */
export interface CachePlan {
  readonly fetch: FetchPlan;
  /** The rule without a status of its own: it answers with its source's. */
  readonly plainRule: FetchRule;
  /** A hash of all that decides what its source is asked, and what is made of the answer. */
  readonly hash: string;
}

/**
 * Reads rules for the cache, each once: a rule that is edited is another one. Throws as fetchPlan
 * does.
 */
export function createPlans(): (rule: FetchRule) => CachePlan {
  const known = new WeakMap<FetchRule, CachePlan>();
  return (rule) => {
    let plan = known.get(rule);
    if (plan === undefined) {
      plan = readPlan(rule);
      known.set(rule, plan);
    }
    return plan;
  };
}

function readPlan(rule: FetchRule): CachePlan {
  const { id, path, httpresponse, enginedata } = rule;
  const decisive = JSON.stringify([path, httpresponse ?? null, enginedata ?? null]);
  return {
    fetch: fetchPlan(rule),
    plainRule: { id, path, ...(enginedata !== undefined && { enginedata }) },
    hash: createHash('sha256').update(decisive).digest('base64url').slice(0, planCharacters),
  };
}

const planCharacters = 22;
