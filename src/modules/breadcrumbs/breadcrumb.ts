import { type Json, type JsonObject } from '../../core/values/json/json.ts';
import { isTarget } from '../rules/rule.ts';
import type { StoredRule } from '../rules/rule.ts';
import { destinationOf, type Destination, type BranchTarget } from './destination.ts';
import type { EvaluationContext } from '../../core/pipeline/conditions/evaluation-context.ts';
import {
  chooseBranch,
  dependenciesOf,
  parseWhen,
  type Branch,
  type Dependencies,
} from '../../core/pipeline/conditions/when.ts';

/** The parsed enginedata of a resolve rule, before its targets are combined with its rule. */
interface WrittenBreadcrumb {
  readonly when: readonly Branch<BranchTarget>[];
  /** The default branch, for visitors that match no other branch; it may have no target. */
  readonly otherwise: Branch<BranchTarget>;
  readonly forwardQuery: boolean;
}

/** A resolve rule with parsed conditions and destinations. */
export interface ParsedBreadcrumb {
  readonly id: string;
  readonly contenttype: string | undefined;
  readonly when: readonly Branch<Destination>[];
  readonly otherwise: Branch<Destination>;
  readonly forwardQuery: boolean;
  readonly dependencies: Dependencies;
}

/**
 * Parses the enginedata of a resolve rule (docs/design/rendering.md#breadcrumbs). Keeps a branch
 * with mistakes and names its problems.
 */
export function parseBreadcrumb(enginedata: JsonObject): WrittenBreadcrumb {
  return {
    when: parseWhen(enginedata.when, (branch, name) => {
      const answer = parseAnswer(branch);
      const problems = answerNames
        .filter((member) => branch[member] !== undefined && answer[member] === undefined)
        .map((member) => `${name}.${member}`);
      const isEmpty = answerNames.every((member) => branch[member] === undefined);
      return { answer, problems: isEmpty ? [name] : problems };
    }),
    otherwise: {
      name: 'default',
      conditions: [],
      problems: [],
      answer: parseAnswer(enginedata),
    },
    forwardQuery: enginedata.forward_query === true,
  };
}

/** The paths of the mistakes in the branches of a breadcrumb. */
export function breadcrumbProblems(enginedata: JsonObject): readonly string[] {
  return parseBreadcrumb(enginedata).when.flatMap(({ problems }) => problems);
}

const ready = new WeakMap<StoredRule, ParsedBreadcrumb>();

/** The breadcrumb of a resolve rule, parsed once for each rule object: an edit makes a new one. */
export function breadcrumbOf(stored: StoredRule): ParsedBreadcrumb {
  let breadcrumb = ready.get(stored);
  if (breadcrumb === undefined) {
    breadcrumb = parseRule(stored);
    ready.set(stored, breadcrumb);
  }
  return breadcrumb;
}

/**
 * The first branch whose conditions all hold, else the default
 * (docs/design/rendering.md#breadcrumbs).
 */
export function chooseDestination(
  { when, otherwise }: Pick<ParsedBreadcrumb, 'when' | 'otherwise'>,
  context: EvaluationContext,
): Branch<Destination> {
  return chooseBranch(when, context) ?? otherwise;
}

function parseRule({ rule }: StoredRule): ParsedBreadcrumb {
  const parsed = parseBreadcrumb(rule.enginedata ?? {});
  const branch = (one: Branch<BranchTarget>): Branch<Destination> => ({
    ...one,
    answer: destinationOf(one.answer, rule),
  });
  return {
    id: rule.id,
    contenttype: rule.contenttype,
    when: parsed.when.map(branch),
    otherwise: branch(parsed.otherwise),
    forwardQuery: parsed.forwardQuery,
    dependencies: dependenciesOf(parsed.when),
  };
}

const answerNames = ['target', 'html', 'status'] as const;

/** The members that a branch of a breadcrumb can have. */
export const branchMembers: readonly string[] = ['if', ...answerNames];

function parseAnswer({ target, html, status }: JsonObject): BranchTarget {
  return {
    target: typeof target === 'string' && isTarget(target) ? target : undefined,
    html: typeof html === 'string' ? html : undefined,
    status: isStatus(status) ? status : undefined,
  };
}

function isStatus(value: Json | undefined): value is number {
  return Number.isInteger(value) && Number(value) >= 200 && Number(value) <= 599;
}
