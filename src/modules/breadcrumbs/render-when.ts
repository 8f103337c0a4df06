import { isJsonObject, type Json, type JsonObject } from '../../core/values/json/json.ts';
import type { StoredRule } from '../rules/rule.ts';
import type { Visitor } from '../../core/http/visitor.ts';
import { EvaluationContext } from '../../core/pipeline/conditions/evaluation-context.ts';
import {
  chooseBranch,
  dependenciesOf,
  parseWhen,
  type Branch,
  type Dependencies,
} from '../../core/pipeline/conditions/when.ts';

/** The enginedata of a page that an engine renders, for each branch of its `when`. */
export interface RenderWhen {
  readonly when: readonly Branch<JsonObject>[];
  /** The default: the enginedata without `when`. */
  readonly otherwise: Branch<JsonObject>;
  readonly dependencies: Dependencies;
}

const ready = new WeakMap<StoredRule, RenderWhen>();

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
): Branch<JsonObject> {
  return chooseBranch(when, new EvaluationContext(rule.id, visit)) ?? otherwise;
}

function readWhen({ when: written, ...rest }: JsonObject): RenderWhen {
  const when = parseWhen(written, (branch, name) => {
    const { enginedata } = branch;
    if (!isJsonObject(enginedata)) return { answer: rest, problems: [`${name}.enginedata`] };
    return { answer: mergePatch(rest, enginedata), problems: [] };
  });
  return {
    when,
    otherwise: { name: 'default', conditions: [], problems: [], answer: rest },
    dependencies: dependenciesOf(when),
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
