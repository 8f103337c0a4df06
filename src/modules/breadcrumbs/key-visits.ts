import type { AccessClient, RequestTarget } from '../../core/http/request.ts';
import type { Explanation } from '../../core/pipeline/explanation.ts';
import type { PlaceAccess } from '../../core/pipeline/place-access.ts';
import { whenReady } from '../../core/values/when-ready.ts';
import { findRule } from '../rules/find.ts';
import { accessOf } from '../rules/rule.ts';
import type { RuleReader } from '../rules/valid-rules.ts';
import { type BranchOutcome, branchOutcomes } from './branches.ts';
import { explainKey } from './explain.ts';
import {
  type BreadcrumbHop,
  type BreadcrumbVisit,
  type ResolvedBreadcrumb,
  breadcrumbStart,
  resolveKey,
} from './resolve.ts';

/** A breadcrumb's key, with its visit. */
export interface KeyVisit extends BreadcrumbVisit {
  readonly key: string;
  /** The method of the request; GET by default. */
  readonly method?: string;
}

/** The breadcrumbs of a site, for operations. */
export interface BreadcrumbVisits {
  /**
   * Resolves a breadcrumb's key. Fails with `not_found` for an unknown key, with `unprocessable`
   * for keys that lead in a circle, and as PlaceAccess.requirePlace for the keys that it leads
   * over.
   */
  resolve(
    visit: KeyVisit & { readonly client: AccessClient },
  ): ResolvedBreadcrumb | Promise<ResolvedBreadcrumb>;
  /** Explains resolve. */
  explainKey(visit: KeyVisit): Explanation;
  /**
   * What each branch answers of the breadcrumb with a key, or of the resolve rule that answers at
   * an origin and path if no file does; none without such a rule.
   */
  branches(
    place: { readonly key: string } | Pick<RequestTarget, 'origin' | 'path'>,
    visit: BreadcrumbVisit,
  ): readonly BranchOutcome[];
}

/** The breadcrumbs among some page rules. */
export function createBreadcrumbVisits(rules: RuleReader, access: PlaceAccess): BreadcrumbVisits {
  return {
    resolve(visit) {
      const { key, origin, client } = visit;
      const over = (resolved: ResolvedBreadcrumb) => {
        const hops = { resolved, origin, isFirstAdmitted: false };
        const required = requireHops(access, hops, client);
        return required === undefined ? resolved : required.then(() => resolved);
      };
      const resolve = () => whenReady(resolveKey(rules, visit), over);
      const admitted = access.requirePlace({ origin, path: key }, client);
      return admitted === undefined ? resolve() : admitted.then(resolve);
    },
    explainKey(visit) {
      const { key, origin, visitor } = visit;
      const steps: BreadcrumbHop[] = [];
      const explained = explainKey(rules, visit, steps);
      const sections = steps.map(({ stored }) => accessOf(stored.rule));
      const named = access.explainSections(sections, visitor);
      const both = { ...explained, ...(named.length > 0 && { access: named }) };
      return access.explainPlace({ origin, path: key, visitor }, both);
    },
    branches(place, visit) {
      const found =
        'key' in place
          ? breadcrumbStart(rules, place.key, visit)
          : findRule('stored', rules, { ...place, fields: visit.fields });
      return found?.stored.rule.kind === 'resolve' ? branchOutcomes(rules, found, visit) : [];
    },
  };
}

/** The keys that a breadcrumb has led over. */
interface PassedHops {
  readonly resolved: Pick<ResolvedBreadcrumb, 'hops'>;
  readonly origin: string;
  /** Whether the client has been admitted to the rule of the first one. */
  readonly isFirstAdmitted: boolean;
}

/**
 * Requires access to all keys that a breadcrumb has led over, and to their rules; rejects as
 * PlaceAccess.requirePlace. Undefined if they are open to everybody.
 */
export function requireHops(
  access: PlaceAccess,
  passed: PassedHops,
  client: AccessClient,
  accessRules?: Set<string>,
): Promise<void> | undefined {
  const { hops } = passed.resolved;
  const asked = passed.isFirstAdmitted ? hops.slice(1) : hops;
  const isOpen = asked.every(({ stored }) => accessOf(stored.rule) === undefined);
  if (asked.length === 0 || (isOpen && !access.hasRules)) return undefined;
  return requireEach(access, passed, client, accessRules);
}

async function requireEach(
  access: PlaceAccess,
  { resolved: { hops }, origin, isFirstAdmitted }: PassedHops,
  ...by: readonly [client: AccessClient, accessRules?: Set<string>]
): Promise<void> {
  for (const [at, { key, stored }] of hops.entries()) {
    const place = { origin, path: key ?? stored.rule.path };
    if (key !== undefined) await access.requirePlace(place, ...by);
    if (at === 0 && isFirstAdmitted) continue;
    await access.requireSection(accessOf(stored.rule), place, ...by);
  }
}
