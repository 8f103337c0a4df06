import { chooseRenderBranch, renderWhenOf } from '../../breadcrumbs/render-when.ts';
import type { Branch, Dependencies } from '../../../core/pipeline/conditions/when.ts';
import type { FoundRule } from '../rule.ts';
import { isJsonObject, type JsonObject } from '../../../core/values/json/json.ts';
import { jsonDigest, preparedFor } from '../../../core/values/json/prepared-json.ts';
import type { Rule } from '../rule.ts';
import type { Visitor } from '../../../core/http/visitor.ts';
import type { OperationResult } from '../../../core/operations/operation.ts';
import { etagOfDigest } from '../../../core/operations/records/read.ts';
import { publicData, serverFields } from './rule-view.ts';

/** The enginedata that a rule has for a visitor. */
interface RenderedRule {
  readonly enginedata: JsonObject;
  /** The branch of `enginedata.when` that holds, or `default`. */
  readonly matched: string;
  /** Undefined for a rule that is the same for all visitors. */
  readonly dependencies: Dependencies | undefined;
}

/** Applies the branches of `enginedata.when` (docs/design/rendering.md#generic-pages). */
export async function renderRule(
  { stored }: FoundRule,
  visit: { readonly visitor: Visitor; readonly query: string },
): Promise<RenderedRule> {
  const renderWhen = renderWhenOf(stored);
  if (renderWhen === undefined) {
    const { enginedata = noEnginedata } = stored.rule;
    return { enginedata, matched: 'default', dependencies: undefined };
  }
  const { dependencies } = renderWhen;
  if (dependencies.needs !== undefined) await visit.visitor.prepare(dependencies.needs);
  const branch: Branch<JsonObject> = chooseRenderBranch(renderWhen, stored, visit);
  return { enginedata: branch.answer, matched: branch.name, dependencies };
}

const noEnginedata: JsonObject = {};

/** The content of a rule as JSON that is made once. */
export const preparedContent = preparedFor(({ content }: Rule) => content);

/** The public part of an enginedata as JSON that is made once. */
export const preparedEnginedata = preparedFor(publicData);

const preparedSchema = preparedFor((schema: JsonObject) => schema);

/** As serverFields; the schema of a table may be large, so its JSON is made once. */
export function preparedServerFields(...given: Parameters<typeof serverFields>): object {
  const { meta, ...others } = serverFields(...given);
  return { ...others, ...(isJsonObject(meta) && { meta: preparedSchema(meta) }) };
}

/** The answer with data of a rule; a prepared one if all anonymous callers get the same. */
export function renderAnswer(
  data: object,
  { variesByLanguage }: FoundRule,
  {
    isForAll,
    dependencies,
  }: { readonly isForAll: boolean; readonly dependencies: Dependencies | undefined },
): OperationResult {
  if (isForAll && dependencies === undefined) {
    return { kind: 'data', data, forAll: { variesByLanguage } };
  }
  const result = { kind: 'data', data, etag: etagOfDigest(jsonDigest(data)) } as const;
  if (dependencies === undefined) return result;
  const language = variesByLanguage ? ['Accept-Language'] : [];
  const vary = [...new Set(['apikey', ...language, ...dependencies.vary])].sort().join(', ');
  return { ...result, caching: ['Cache-Control', 'private, no-cache', 'Vary', vary] };
}
