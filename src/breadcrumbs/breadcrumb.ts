import { parseBreadcrumb, type Branch, type Breadcrumb } from '../model/breadcrumb.ts';
import type { ConditionName } from '../model/condition.ts';
import type { StoredRule } from '../model/rule.ts';
import type { VisitorNeeds } from '../model/visitor.ts';
import { destinationOf, type Destination } from './destination.ts';
import { firstFailing, type Trial } from './trial.ts';

/** A branch with what it comes to. */
export interface ReadyBranch extends Branch {
  readonly destination: Destination;
}

/** A resolve rule, ready to be held against visitors. */
export interface Crumb {
  readonly id: string;
  readonly contenttype: string | undefined;
  readonly when: readonly ReadyBranch[];
  readonly otherwise: ReadyBranch;
  readonly forwardQuery: boolean;
  /** What its conditions ask of a visitor. */
  readonly asks: ReadonlySet<ConditionName>;
  /** What of that has to be prepared; undefined for nothing. */
  readonly needs: VisitorNeeds | undefined;
}

const ready = new WeakMap<StoredRule, Crumb>();

/**
 * The breadcrumb of a resolve rule, made once and kept as long as somebody keeps the rule: an edit
 * makes another one.
 */
export function crumbOf(stored: StoredRule): Crumb {
  let crumb = ready.get(stored);
  if (crumb === undefined) {
    crumb = makeCrumb(stored);
    ready.set(stored, crumb);
  }
  return crumb;
}

/** The first branch whose conditions all hold, else the default (contract §6). */
export function decide({ when, otherwise }: Crumb, trial: Trial): ReadyBranch {
  for (const branch of when) {
    if (branch.problems.length === 0 && firstFailing(branch.conditions, trial) === undefined) {
      return branch;
    }
  }
  return otherwise;
}

function makeCrumb({ rule }: StoredRule): Crumb {
  const parsed = parseBreadcrumb(rule.enginedata ?? {});
  const branch = (one: Branch): ReadyBranch => ({ ...one, destination: destinationOf(one, rule) });
  const asks = asksOf(parsed);
  const needs = { user: asks.has('user') || asks.has('role'), country: asks.has('country') };
  return {
    id: rule.id,
    contenttype: rule.contenttype,
    when: parsed.when.map(branch),
    otherwise: branch(parsed.otherwise),
    forwardQuery: parsed.forwardQuery,
    asks,
    needs: needs.user || needs.country ? needs : undefined,
  };
}

function asksOf({ when }: Breadcrumb): ReadonlySet<ConditionName> {
  const usable = when.filter(({ problems }) => problems.length === 0);
  return new Set(usable.flatMap(({ conditions }) => conditions.map(({ name }) => name)));
}
