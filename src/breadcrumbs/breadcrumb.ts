import { type Json, type JsonObject } from '../model/json.ts';
import { isTarget } from '../model/target.ts';
import type { StoredRule } from '../model/rule.ts';
import { destinationOf, type Destination, type BranchTarget } from './destination.ts';
import type { EvaluationContext } from './evaluation.ts';
import { chosenBranch, dependenciesOf, parseWhen, type Branch, type Dependencies } from './when.ts';

/** The enginedata of a resolve rule, as it is written. */
interface Breadcrumb {
  readonly when: readonly Branch<BranchTarget>[];
  /** What holds where no other branch does; it may come to nothing. */
  readonly otherwise: Branch<BranchTarget>;
  readonly forwardQuery: boolean;
}

/** A resolve rule, ready to be tested with visitors. */
export interface ReadyBreadcrumb {
  readonly id: string;
  readonly contenttype: string | undefined;
  readonly when: readonly Branch<Destination>[];
  readonly otherwise: Branch<Destination>;
  readonly forwardQuery: boolean;
  readonly dependencies: Dependencies;
}

/**
 * Reads the enginedata of a resolve rule (docs/design/rendering.md#breadcrumbs). A branch with
 * anything in it that cannot be understood is kept, with its problems named.
 */
export function parseBreadcrumb(enginedata: JsonObject): Breadcrumb {
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

/** The paths of what cannot be understood in the branches of a breadcrumb. */
export function breadcrumbProblems(enginedata: JsonObject): readonly string[] {
  return parseBreadcrumb(enginedata).when.flatMap(({ problems }) => problems);
}

const ready = new WeakMap<StoredRule, ReadyBreadcrumb>();

/**
 * The breadcrumb of a resolve rule, made once and kept as long as somebody keeps the rule: an edit
 * makes another one.
 */
export function breadcrumbOf(stored: StoredRule): ReadyBreadcrumb {
  let breadcrumb = ready.get(stored);
  if (breadcrumb === undefined) {
    breadcrumb = makeReady(stored);
    ready.set(stored, breadcrumb);
  }
  return breadcrumb;
}

/**
 * The first branch whose conditions all hold, else the default
 * (docs/design/rendering.md#breadcrumbs).
 */
export function decide(
  { when, otherwise }: Pick<ReadyBreadcrumb, 'when' | 'otherwise'>,
  context: EvaluationContext,
): Branch<Destination> {
  return chosenBranch(when, context) ?? otherwise;
}

function makeReady({ rule }: StoredRule): ReadyBreadcrumb {
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

/** The members that a branch of a breadcrumb may have. */
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
