import type { FieldList } from '../../core/http/reply.ts';
import type { Visitor } from '../../core/http/visitor.ts';
import { EvaluationContext } from '../../core/pipeline/conditions/condition.ts';
import {
  type Branch,
  type Dependencies,
  chooseBranch,
  dependenciesOf,
  parseWhen,
} from '../../core/pipeline/conditions/when.ts';
import { Failure } from '../../core/values/failure.ts';
import { type Json, type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import type { StoredRule } from '../rules/rule.ts';
import type { RuleReader } from '../rules/valid-rules.ts';
import { type Destination, breadcrumbOf } from './breadcrumb.ts';
import { breadcrumbHopsMax } from './limits.ts';
import {
  type BreadcrumbStart,
  type BreadcrumbVisit,
  breadcrumbStart,
  outcomeOf,
  targetVisit,
} from './resolve.ts';

const ready = new WeakMap<StoredRule, RenderWhen>();

/** Branches of a breadcrumb that a comparison answers, over all keys that it leads to. */
const breadcrumbOutcomesMax = 2_000;

/** What one branch of a breadcrumb answers, to visitors who meet its conditions. */
export interface BranchOutcome {
  /** `when[0]`, or of a branch that leads to another key, `when[0] → key promo → default`. */
  readonly name: string;
  /** The `if` of each branch on the way, as it is written. */
  readonly conditions: readonly Json[];
  readonly status?: number;
  readonly target?: string | undefined;
  readonly content?: string | undefined;
  readonly contenttype?: string | undefined;
  /** The fields of each branch on the way: name, template, name, template …. */
  readonly headers?: FieldList;
  /** Why it has no answer. */
  readonly failure?: string;
}

/** A place on the way of a breadcrumb. */
interface Walked extends BreadcrumbStart {
  readonly name: string;
  readonly conditions: readonly Json[];
  readonly headers: FieldList;
  readonly keys: readonly string[];
}

/**
 * What each branch of a breadcrumb answers, over all keys that it leads to: those of visitors whom
 * nobody describes, too. Branches with mistakes are never taken, and are not among them. It ends
 * with the first `outcomesMax`.
 */
export function branchOutcomes(
  rules: RuleReader,
  start: BreadcrumbStart,
  visit: BreadcrumbVisit,
  outcomesMax = breadcrumbOutcomesMax,
): readonly BranchOutcome[] {
  const outcomes: BranchOutcome[] = [];
  const walk = (at: Walked): void => {
    const breadcrumb = breadcrumbOf(at.stored);
    for (const branch of [...breadcrumb.when, breadcrumb.otherwise]) {
      if (outcomes.length >= outcomesMax) return;
      if (branch.problems.length > 0) continue;
      const name = at.name + branch.name;
      const conditions = [...at.conditions, conditionsOf(at, branch)];
      const { answer } = branch;
      const headers = [...at.headers, ...(answer.fields?.lines ?? [])];
      if (answer.kind !== 'key') {
        outcomes.push({ name, conditions, headers, ...answered(at, branch, visit) });
        continue;
      }
      const next = nextPlace(rules, answer.key, { at, visit });
      if (typeof next === 'string') outcomes.push({ name, conditions, failure: next });
      else walk({ ...next, name: `${name} → key ${answer.key} → `, conditions, headers });
    }
  };
  walk({ ...start, name: '', conditions: [], headers: [], keys: [] });
  return outcomes;
}

/** The `if` of a branch, as it is written; null for the default. */
function conditionsOf({ stored }: BreadcrumbStart, { name }: Branch<Destination>): Json {
  const when = stored.rule.enginedata?.when;
  const at = /^when\[(\d+)\]$/.exec(name)?.[1];
  const branch = Array.isArray(when) && at !== undefined ? (when[Number(at)] as Json) : null;
  return (branch as { readonly if?: Json } | null)?.if ?? null;
}

/** The rule of a key that a branch leads to, or why it leads nowhere, as a sentence. */
function nextPlace(
  rules: RuleReader,
  key: string,
  { at: { keys }, visit }: { readonly at: Walked; readonly visit: BreadcrumbVisit },
): Omit<Walked, 'name' | 'conditions' | 'headers'> | string {
  if (keys.length >= breadcrumbHopsMax || keys.includes(key)) {
    return `It leads in a circle or over more than ${breadcrumbHopsMax} keys.`;
  }
  const start = breadcrumbStart(rules, key, visit);
  if (start === undefined) return `No breadcrumb has the key ${key}.`;
  return { ...start, keys: [...keys, key] };
}

function answered(
  { stored, capture }: BreadcrumbStart,
  branch: Branch<Destination>,
  visit: BreadcrumbVisit,
): Omit<BranchOutcome, 'name' | 'conditions'> {
  try {
    return outcomeOf(breadcrumbOf(stored), branch, targetVisit(visit, capture));
  } catch (error) {
    if (error instanceof Failure) return { failure: error.message };
    throw error;
  }
}

/** The enginedata of a page that an engine renders, for each branch of its `when`. */
interface RenderWhen {
  readonly when: readonly RenderBranch[];
  /** The default: the enginedata without `when`. */
  readonly otherwise: RenderBranch;
  readonly dependencies: Dependencies;
}

/**
 * A branch with its enginedata, which is merged for a visitor who gets it: all of them together may
 * have a thousand times the size of the rule.
 */
type RenderBranch = Branch<() => JsonObject>;

/**
 * The branches of `enginedata.when` of a rule that an engine renders, each merged over the rest
 * (RFC 7396); undefined for a rule without `when`. Parsed once for each rule object.
 */
export function renderWhenOf(stored: StoredRule): RenderWhen | undefined {
  const { kind, enginedata } = stored.rule;
  if (kind === 'resolve' || kind === 'content.fetch') return undefined;
  if (enginedata === undefined || !Array.isArray(enginedata.when)) return undefined;
  let found = ready.get(stored);
  if (found === undefined) {
    found = readWhen(enginedata);
    ready.set(stored, found);
  }
  return found;
}

/** The paths of the mistakes in an `enginedata.when`. */
export function renderWhenProblems(enginedata: JsonObject): readonly string[] {
  return readWhen(enginedata).when.flatMap(({ problems }) => problems);
}

/** The first branch that applies to a visitor, who must be prepared, or the default. */
export function chooseRenderBranch(
  { when, otherwise }: RenderWhen,
  { rule }: StoredRule,
  visit: { readonly visitor: Visitor; readonly query: string },
): RenderBranch {
  return chooseBranch(when, new EvaluationContext(rule.id, visit)) ?? otherwise;
}

function readWhen({ when: written, ...rest }: JsonObject): RenderWhen {
  const when = parseWhen(written, (branch, name) => {
    const { enginedata } = branch;
    const isRead = isJsonObject(enginedata);
    const answer = isRead ? mergedWhenAsked(rest, enginedata) : () => rest;
    return { answer, problems: isRead ? [] : [`${name}.enginedata`] };
  });
  return {
    when,
    otherwise: { name: 'default', conditions: [], problems: [], answer: () => rest },
    dependencies: dependenciesOf(when),
  };
}

/** The patched object, as long as anything else has it in memory. */
function mergedWhenAsked(target: JsonObject, patch: JsonObject): () => JsonObject {
  let known: WeakRef<JsonObject> | undefined;
  return () => {
    const before = known?.deref();
    if (before !== undefined) return before;
    const merged = mergePatch(target, patch);
    known = new WeakRef(merged);
    return merged;
  };
}

/** JSON Merge Patch (RFC 7396 §2) of objects. */
function mergePatch(target: JsonObject, patch: JsonObject): JsonObject {
  const merged: Record<string, Json> = Object.assign(
    Object.create(null) as Record<string, Json>,
    target,
  );
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) Reflect.deleteProperty(merged, name);
    else if (isJsonObject(value)) {
      const before = merged[name];
      merged[name] = mergePatch(isJsonObject(before) ? before : {}, value);
    } else merged[name] = value;
  }
  return { ...merged };
}
