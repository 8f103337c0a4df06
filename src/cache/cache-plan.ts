import { createHash } from 'node:crypto';
import { fetchPlan, type FetchPlan, type FetchRule } from '../proxy/fetch-plan.ts';

/** A content.fetch rule, prepared for the cache. */
export interface CachePlan {
  readonly fetch: FetchPlan;
  /** The rule without `httpresponse`: it keeps the status of the source. */
  readonly plainRule: FetchRule;
  /** A hash of all settings that affect the request to the source or its response. */
  readonly hash: string;
  /** Fields that identify the client to the source, by lower-case name. */
  readonly credentialFields: readonly string[];
}

/**
 * Returns a function that prepares a rule once. An edited rule is another object. `identityFields`
 * are the fields in which a trusted proxy names the client, by lower-case name. Throws as fetchPlan
 * does.
 */
export function cachePlans(identityFields: readonly string[]): (rule: FetchRule) => CachePlan {
  const known = new WeakMap<FetchRule, CachePlan>();
  return (rule) => {
    let plan = known.get(rule);
    if (plan === undefined) {
      plan = readPlan(rule, identityFields);
      known.set(rule, plan);
    }
    return plan;
  };
}

function readPlan(rule: FetchRule, identityFields: readonly string[]): CachePlan {
  const { id, path, httpresponse, enginedata } = rule;
  const credentialFields = ['authorization', 'cookie', ...identityFields];
  const decisive = JSON.stringify([
    ...[storedFormat, credentialFields],
    ...[path, httpresponse ?? null, enginedata ?? null],
  ]);
  const fetch = fetchPlan(rule);
  return {
    fetch,
    // A field that the rule sets is the same for every client.
    credentialFields: credentialFields.filter((name) => !fetch.headers.has(name)),
    plainRule: { id, path, ...(enginedata !== undefined && { enginedata }) },
    hash: createHash('sha256').update(decisive).digest('base64url').slice(0, planCharacters),
  };
}

const planCharacters = 22;

/** Counts up when answers that earlier versions stored must not be used any more. */
const storedFormat = 2;
