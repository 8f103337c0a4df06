import type { FieldList } from '../../http/reply.ts';
import { type VisitorNeeds, millionths } from '../../http/visitor.ts';
import { type Json, type JsonObject, isJsonObject } from '../../values/json/json.ts';
import type { Condition, ConditionVisit, EvaluationContext } from './condition.ts';
import { parseConditions } from './table.ts';

/** Branches of a `when`. */
export const branchesMax = 1_000;

/** One branch of a `when` with its answer. */
export interface Branch<T> {
  /** `when[0]`, `when[1]` …, or `default`. */
  readonly name: string;
  /** In the order in which they are written. */
  readonly conditions: readonly Condition[];
  readonly answer: T;
  /** The paths of its mistakes, such as `when[0].if.colour`; with any, the branch never wins. */
  readonly problems: readonly string[];
}

/** The facts that the choice of a branch depends on. */
export interface Dependencies {
  /** Fields of the request, as Vary names them. */
  readonly vary: readonly string[];
  /** The facts about a visitor that take time to get; undefined for none. */
  readonly needs: VisitorNeeds | undefined;
  /** Header fields that the answer to a visit carries. */
  readonly answerFields: readonly ((visit: ConditionVisit) => FieldList)[];
}

/** The answer of a branch as it is written, and the paths of its mistakes. */
interface ParsedAnswer<T> {
  readonly answer: T;
  readonly problems: readonly string[];
}

/**
 * Parses a `when` (docs/design/rendering.md#breadcrumbs): a list of `{if: {…}, …}`; `parseAnswer`
 * parses all members but `if`. Keeps a branch with mistakes and names its problems.
 */
export function parseWhen<T>(
  written: Json | undefined,
  parseAnswer: (branch: JsonObject, name: string) => ParsedAnswer<T>,
): readonly Branch<T>[] {
  const branches = Array.isArray(written) ? (written as readonly Json[]) : [];
  const parsed = branches.slice(0, branchesMax).map((branch, at) => {
    const name = `when[${at}]`;
    if (!isJsonObject(branch)) {
      const { answer } = parseAnswer({}, name);
      return { name, conditions: [], answer, problems: [name] };
    }
    const { conditions, unreadable } = parseConditions(isJsonObject(branch.if) ? branch.if : {});
    const { answer, problems } = parseAnswer(branch, name);
    return {
      ...{ name, conditions, answer },
      problems: [
        // Without this, a branch with a missing or misspelt `if` would match every visitor.
        ...(isJsonObject(branch.if) ? [] : [`${name}.if`]),
        ...unreadable.map((condition) => `${name}.if.${condition}`),
        ...problems,
      ],
    };
  });
  return withShares(parsed);
}

/** The first branch whose conditions all hold; undefined if there is none. */
export function chooseBranch<B extends Branch<unknown>>(
  when: readonly B[],
  context: EvaluationContext,
): B | undefined {
  return when.find(
    ({ problems, conditions }) =>
      problems.length === 0 && firstFailing(conditions, context) === undefined,
  );
}

/** The first condition that does not hold; undefined if all do. */
export function firstFailing(
  conditions: readonly Condition[],
  context: EvaluationContext,
): Condition | undefined {
  for (const condition of conditions) if (!condition.holds(context)) return condition;
  return undefined;
}

/** What the choice between branches depends on. */
export function dependenciesOf(when: readonly Branch<unknown>[]): Dependencies {
  const usable = when.filter(({ problems }) => problems.length === 0);
  const types = new Set(usable.flatMap(({ conditions }) => conditions.map(({ type }) => type)));
  const needs = {
    user: [...types].some((type) => type.needs.user === true),
    location: [...types].some((type) => type.needs.location === true),
  };
  return {
    vary: [...new Set([...types].flatMap(({ vary }) => vary))],
    needs: needs.user || needs.location ? needs : undefined,
    answerFields: [...types].flatMap(({ answerFields }) => answerFields ?? []),
  };
}

/** The dependencies of several choices. */
export function joinedDependencies(all: readonly Dependencies[]): Dependencies {
  return {
    vary: [...new Set(all.flatMap(({ vary }) => vary))],
    needs: undefined,
    answerFields: [...new Set(all.flatMap(({ answerFields }) => answerFields))],
  };
}

/**
 * Allocates percentages consecutively: 30, 30 and 40 cover all visitors. Each is a share of the
 * visitors who meet the other conditions of its branch.
 */
function withShares<T>(branches: readonly Branch<T>[]): readonly Branch<T>[] {
  let taken = 0;
  return branches.map((branch) => {
    if (branch.problems.length > 0) return branch;
    const conditions = branch.conditions.map((condition) => {
      const { share } = condition;
      if (share === undefined) return condition;
      const from = taken;
      taken = (taken + share.size) % millionths;
      return share.startingAt(from);
    });
    return { ...branch, conditions };
  });
}
