import { authorityOf } from '../../core/http/field-template.ts';
import type { Fields } from '../../core/http/request.ts';
import type { Visitor } from '../../core/http/visitor.ts';
import { EvaluationContext } from '../../core/pipeline/conditions/condition.ts';
import {
  type Branch,
  type Dependencies,
  joinedDependencies,
} from '../../core/pipeline/conditions/when.ts';
import { Failure } from '../../core/values/failure.ts';
import { capturedPart, isWildcardPath } from '../../core/values/path.ts';
import {
  type CandidateReads,
  candidatesFor,
  ownersOf,
  sortByPrecedence,
} from '../rules/matcher.ts';
import type { Candidate, Resolution, StoredRule } from '../rules/rule.ts';
import type { RuleReader } from '../rules/valid-rules.ts';
import {
  type Destination,
  type ParsedBreadcrumb,
  type TargetVisit,
  breadcrumbOf,
  chooseDestination,
  locationOf,
} from './breadcrumb.ts';
import { breadcrumbHopsMax } from './limits.ts';

/** The visit of a breadcrumb: the visitor, and what targets may take of the request. */
export interface BreadcrumbVisit {
  readonly origin: string;
  /** The canonical path that is visited; that of a key is the key. */
  readonly path?: string;
  readonly query: string;
  /** The authority that `{host}` stands for; by default that of the origin. */
  readonly host?: string;
  readonly fields: Fields;
  readonly visitor: Visitor;
}

/** The resolve rule that a visit starts at. */
export interface BreadcrumbStart {
  readonly stored: StoredRule;
  /** The part of the visited path that the `*` of the rule's path matches. */
  readonly capture: string | undefined;
}

/** A rule on the way of a breadcrumb, and its chosen branch. */
export interface BreadcrumbHop {
  /** The key that led there; undefined for the first one. */
  readonly key: string | undefined;
  readonly stored: StoredRule;
  readonly breadcrumb: ParsedBreadcrumb;
  readonly context: EvaluationContext;
  readonly branch: Branch<Destination>;
}

/** The result of a breadcrumb, and what it depends on. */
export interface ResolvedBreadcrumb extends Resolution {
  readonly dependencies: Dependencies;
  /** The cache key of the reply; undefined if the reply depends on the visitor. */
  readonly cacheKey: object | undefined;
  /** The rules on the way, each with its branch. */
  readonly hops: readonly BreadcrumbHop[];
}

/**
 * Resolves a breadcrumb's key (docs/design/rendering.md#breadcrumbs), including `key:` targets.
 * Fails with `not_found` for a key without a rule or a rule without a target, and with
 * `unprocessable` for keys that lead in a circle or over too many keys. Returns a promise only if a
 * condition needs facts about the visitor that take time.
 */
export function resolveKey(
  reads: RuleReader,
  { key, ...visit }: BreadcrumbVisit & { readonly key: string },
): ResolvedBreadcrumb | Promise<ResolvedBreadcrumb> {
  const start = breadcrumbStart(reads, key, visit);
  if (start === undefined) throw noBreadcrumb();
  const path = key.startsWith('/') ? key : `/${key}`;
  return follow(reads, { ...start, key: undefined }, { ...visit, path }, []);
}

/**
 * Resolves a rule that was found by its own path; fails as resolveKey does. Adds the rules that it
 * leads over to `steps`, also if it fails.
 */
export function resolveVisit(
  reads: RuleReader,
  start: BreadcrumbStart,
  visit: BreadcrumbVisit,
  steps: BreadcrumbHop[] = [],
): ResolvedBreadcrumb | Promise<ResolvedBreadcrumb> {
  const { stored, capture } = start;
  return follow(reads, { stored, capture, key: undefined }, visit, steps);
}

/**
 * Whether a branch of a breadcrumb, or of one that it leads over, has a Location that `isThere`
 * accepts. It asks nothing of the visitor, so the branch may be for others.
 */
export function mayLeadTo(
  reads: RuleReader,
  start: BreadcrumbStart,
  visit: BreadcrumbVisit,
  isThere: (location: string) => boolean,
): boolean {
  const keys = new Set<string>();
  const mayLead = ({ stored, capture }: BreadcrumbStart): boolean => {
    const { when, otherwise, forwardQuery } = breadcrumbOf(stored);
    return [...when, otherwise].some(({ answer }) => {
      if (answer.kind === 'redirect') {
        const location = locationOf(answer.target, targetVisit(visit, capture), forwardQuery);
        return location !== undefined && isThere(location);
      }
      if (answer.kind !== 'key' || keys.has(answer.key)) return false;
      keys.add(answer.key);
      const next = breadcrumbStart(reads, answer.key, visit);
      // One that leads over more keys than a visit does is not followed: it may lead anywhere.
      return next !== undefined && (keys.size > breadcrumbHopsMax || mayLead(next));
    });
  };
  return mayLead(start);
}

/**
 * The breadcrumb of a key, as a visit finds it: that of `/was/*` for the key `/was/x`, too.
 * Undefined without one.
 */
export function breadcrumbStart(
  reads: RuleReader,
  key: string,
  visit: Pick<BreadcrumbVisit, 'origin' | 'fields'>,
): BreadcrumbStart | undefined {
  const [winner] = breadcrumbCandidates(reads, key, visit);
  const stored = winner && reads.ruleOf(winner);
  if (stored === undefined) return undefined;
  const { path } = stored.rule;
  return { stored, capture: path === key ? undefined : capturedPart(path, key) };
}

/** The resolve rules of a key by precedence: the first one is the breadcrumb. */
export function breadcrumbCandidates(
  reads: CandidateReads,
  key: string,
  { origin, fields }: Pick<BreadcrumbVisit, 'origin' | 'fields'>,
): readonly Candidate[] {
  const candidates = key.startsWith('/')
    ? candidatesFor(reads, { origin, path: key })
    : ownersOf(reads, origin).flatMap((owner) => rulesOfKey(reads, owner, key));
  return sortByPrecedence(
    candidates.filter(({ kind }) => kind === 'resolve'),
    fields,
  );
}

/** The rules whose path is a key that no URL has: a `*` at its end is an ordinary character. */
function rulesOfKey(reads: CandidateReads, origin: string, key: string): readonly Candidate[] {
  if (!isWildcardPath(key)) return reads.exactRules(origin, key);
  const groups = [...reads.wildcardRules(origin, key.slice(0, -1))];
  return groups.flat().filter(({ path }) => path === key);
}

interface HopTarget extends BreadcrumbStart {
  readonly key: string | undefined;
}

function follow(
  reads: RuleReader,
  start: HopTarget,
  visit: BreadcrumbVisit,
  steps: BreadcrumbHop[],
): ResolvedBreadcrumb | Promise<ResolvedBreadcrumb> {
  let place = start;
  for (;;) {
    const at = place;
    const { stored, capture, key } = at;
    const breadcrumb = breadcrumbOf(stored);
    const { needs } = breadcrumb.dependencies;
    const wait = needs === undefined ? undefined : visit.visitor.prepare(needs);
    if (wait !== undefined) return wait.then(() => follow(reads, at, visit, steps));
    const context = new EvaluationContext(breadcrumb.id, visit);
    const branch = chooseDestination(breadcrumb, context);
    const step = { key, stored, breadcrumb, context, branch };
    steps.push(step);
    if (branch.answer.kind !== 'key') return resolvedAt(step, { steps, visit, capture });
    place = hop(reads, branch.answer.key, visit, steps);
  }
}

function hop(
  reads: RuleReader,
  key: string,
  visit: BreadcrumbVisit,
  steps: readonly BreadcrumbHop[],
): HopTarget {
  if (steps.length > breadcrumbHopsMax || steps.some((step) => step.key === key)) {
    throw new Failure(
      'unprocessable',
      `The breadcrumb leads in a circle or over more than ${breadcrumbHopsMax} keys.`,
    );
  }
  const start = breadcrumbStart(reads, key, visit);
  if (start === undefined) throw noBreadcrumb();
  return { key, ...start };
}

function noBreadcrumb(): Failure {
  return new Failure('not_found', 'No breadcrumb has this key.');
}

function resolvedAt(
  { breadcrumb, branch }: BreadcrumbHop,
  {
    steps,
    visit,
    capture,
  }: {
    readonly steps: readonly BreadcrumbHop[];
    readonly visit: BreadcrumbVisit;
    readonly capture: string | undefined;
  },
): ResolvedBreadcrumb {
  const { id } = breadcrumb;
  const isDirect = steps.length === 1;
  const dependencies = isDirect
    ? breadcrumb.dependencies
    : joinedDependencies(steps.map((step) => step.breadcrumb.dependencies));
  const outcome = outcomeOf(breadcrumb, branch, targetVisit(visit, capture));
  const { answer: destination } = branch;
  // A Location with the query or the capture of this visit is not that of the next one.
  const isFixed = destination.kind !== 'redirect' || outcome.target === destination.target.location;
  return {
    ...{ id, matched: branch.name, dependencies, hops: steps, ...outcome },
    cacheKey: isDirect && isFixed ? branch : undefined,
  };
}

/** What the targets of a breadcrumb may take of a visit. */
export function targetVisit(
  { origin, path = '/', query, host = authorityOf(origin) }: BreadcrumbVisit,
  capture: string | undefined,
): TargetVisit {
  return { path, query, host, capture };
}

/**
 * What a branch answers, for what its target takes of a visit. Throws `not_found`
 * for a branch without a target, and for one that leads to another key.
 */
export function outcomeOf(
  { contenttype, forwardQuery }: Pick<ParsedBreadcrumb, 'contenttype' | 'forwardQuery'>,
  { answer: destination }: Branch<Destination>,
  visit: TargetVisit,
): Pick<Resolution, 'status' | 'target' | 'content' | 'contenttype'> {
  switch (destination.kind) {
    case 'redirect': {
      const target = locationOf(destination.target, visit, forwardQuery);
      if (target === undefined) throw noTarget();
      return { status: destination.status, target, content: undefined, contenttype };
    }
    case 'content': {
      const { status, html } = destination;
      const type = contenttype ?? 'text/html; charset=utf-8';
      return { status, target: undefined, content: html, contenttype: type };
    }
    case 'bare':
      return { status: destination.status, target: undefined, content: undefined, contenttype };
    case 'nothing':
    case 'key':
      throw noTarget();
  }
}

function noTarget(): Failure {
  return new Failure('not_found', 'This breadcrumb has no target yet.');
}
