import type { Fields } from '../http/request.ts';
import { Failure } from '../model/failure.ts';
import type { Resolution } from '../model/found.ts';
import { breadcrumbHopsMax } from './limits.ts';
import type { Candidate, StoredRule } from '../model/rule.ts';
import type { Visitor } from '../model/visitor.ts';
import { breadcrumbOf, decide, type ReadyBreadcrumb } from './breadcrumb.ts';
import { locationOf, type Destination } from './destination.ts';
import { EvaluationContext } from './evaluation.ts';
import { joinedDependencies, type Branch, type Dependencies } from './when.ts';
import { sortByPrecedence, type CandidateReads } from '../rules/matcher.ts';
import type { RuleReader } from '../rules/rule-cache.ts';

/** Who follows a breadcrumb, from where, and the query that it may forward. */
export interface Visit {
  readonly origin: string;
  readonly query: string;
  readonly fields: Fields;
  readonly visitor: Visitor;
}

/** A resolve rule where somebody stands before it. */
export interface Start {
  readonly stored: StoredRule;
  /** What the `*` of its path stands for. */
  readonly capture: string | undefined;
}

/** A rule on the way that a breadcrumb leads, and the branch that was taken there. */
export interface BreadcrumbHop {
  /** The key that led there; undefined for the first one. */
  readonly key: string | undefined;
  readonly stored: StoredRule;
  readonly breadcrumb: ReadyBreadcrumb;
  readonly context: EvaluationContext;
  readonly branch: Branch<Destination>;
}

/** What a breadcrumb comes to, and what that depended on. */
export interface Resolved extends Resolution {
  readonly dependencies: Dependencies;
  /** Stands for the answer where it is the same for all who come to it; else undefined. */
  readonly fixed: object | undefined;
}

/**
 * Follows a breadcrumb's key to what it stands for (docs/design/rendering.md#breadcrumbs), `key:`
 * targets included. Fails with `not_found` for a key without a rule or a rule without a target,
 * `unprocessable` for keys that lead in a circle or too far. Waits only where a condition asks for
 * what has to be found out.
 */
export function resolveKey(
  reads: RuleReader,
  { key, ...visit }: Visit & { readonly key: string },
): Resolved | Promise<Resolved> {
  const stored = breadcrumbRule(reads, key, visit);
  return follow(reads, { stored, capture: undefined, key: undefined }, visit, []);
}

/**
 * What a resolve rule found by a visit to its own path comes to; fails as resolveKey does. The
 * rules that it leads over are added to `steps`, whether it comes to anything or not.
 */
export function resolveVisit(
  reads: RuleReader,
  start: Start,
  visit: Visit,
  steps: BreadcrumbHop[] = [],
): Resolved | Promise<Resolved> {
  const { stored, capture } = start;
  return follow(reads, { stored, capture, key: undefined }, visit, steps);
}

/** The resolve rules of a key in the order in which they win: the first one is the breadcrumb. */
export function breadcrumbCandidates(
  reads: CandidateReads,
  key: string,
  { origin, fields }: Pick<Visit, 'origin' | 'fields'>,
): readonly Candidate[] {
  const candidates = rulesOfKey(reads, origin, key).concat(rulesOfKey(reads, '*', key));
  return sortByPrecedence(
    candidates.filter(({ kind }) => kind === 'resolve'),
    fields,
  );
}

/** The path of a rule is its key, also where it ends in a `*`: that stands for nothing then. */
function rulesOfKey(reads: CandidateReads, origin: string, key: string): readonly Candidate[] {
  if (!key.startsWith('/') || !key.endsWith('*')) return reads.exactRules(origin, key);
  const groups = [...reads.wildcardRules(origin, key.slice(0, -1))];
  return groups.flat().filter(({ path }) => path === key);
}

interface Place extends Start {
  readonly key: string | undefined;
}

function follow(
  reads: RuleReader,
  start: Place,
  visit: Visit,
  steps: BreadcrumbHop[],
): Resolved | Promise<Resolved> {
  let place = start;
  for (;;) {
    const at = place;
    const { stored, capture, key } = at;
    const breadcrumb = breadcrumbOf(stored);
    const { needs } = breadcrumb.dependencies;
    const wait = needs === undefined ? undefined : visit.visitor.prepare(needs);
    if (wait !== undefined) return wait.then(() => follow(reads, at, visit, steps));
    const context = new EvaluationContext(breadcrumb.id, visit);
    const branch = decide(breadcrumb, context);
    const step = { key, stored, breadcrumb, context, branch };
    steps.push(step);
    if (branch.answer.kind !== 'key') return arrive(step, { steps, visit, capture });
    place = hop(reads, branch.answer.key, visit, steps);
  }
}

function hop(reads: RuleReader, key: string, visit: Visit, steps: readonly BreadcrumbHop[]): Place {
  if (steps.length > breadcrumbHopsMax || steps.some((step) => step.key === key)) {
    throw new Failure(
      'unprocessable',
      `The breadcrumb leads in a circle or over more than ${breadcrumbHopsMax} keys.`,
    );
  }
  return { key, stored: breadcrumbRule(reads, key, visit), capture: undefined };
}

function breadcrumbRule(reads: RuleReader, key: string, visit: Visit): StoredRule {
  const [winner] = breadcrumbCandidates(reads, key, visit);
  const stored = winner && reads.ruleOf(winner);
  if (stored === undefined) throw new Failure('not_found', 'No breadcrumb has this key.');
  return stored;
}

function arrive(
  { breadcrumb, branch }: BreadcrumbHop,
  {
    steps,
    visit,
    capture,
  }: {
    readonly steps: readonly BreadcrumbHop[];
    readonly visit: Visit;
    readonly capture: string | undefined;
  },
): Resolved {
  const { id, contenttype, forwardQuery } = breadcrumb;
  const { answer: destination, name: matched } = branch;
  const isDirect = steps.length === 1;
  const dependencies = isDirect
    ? breadcrumb.dependencies
    : joinedDependencies(steps.map((step) => step.breadcrumb.dependencies));
  const base = { id, contenttype, matched, dependencies, fixed: isDirect ? branch : undefined };
  switch (destination.kind) {
    case 'redirect': {
      const query = forwardQuery ? visit.query : '';
      const target = locationOf(destination.target, { query, capture });
      if (target === undefined) throw nowhere();
      const fixed = target === destination.target.location ? base.fixed : undefined;
      return { ...base, fixed, status: destination.status, target, content: undefined };
    }
    case 'content': {
      const { status, html } = destination;
      return {
        ...base,
        contenttype: contenttype ?? 'text/html; charset=utf-8',
        ...{ status, target: undefined, content: html },
      };
    }
    case 'bare':
      return { ...base, status: destination.status, target: undefined, content: undefined };
    case 'nothing':
    case 'key':
      throw nowhere();
  }
}

function nowhere(): Failure {
  return new Failure('not_found', 'This breadcrumb has no target yet.');
}
