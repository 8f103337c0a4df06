import type { Visitor } from '../../../core/http/visitor.ts';
import type { OperationResult } from '../../../core/operations/operation.ts';
import { etagOfDigest } from '../../../core/operations/records/read.ts';
import type { Dependencies } from '../../../core/pipeline/conditions/when.ts';
import { type JsonObject, isJsonObject } from '../../../core/values/json/json.ts';
import { jsonDigest, preparedFor } from '../../../core/values/json/prepared-json.ts';
import { chooseRenderBranch, renderWhenOf } from '../../breadcrumbs/branches.ts';
import type { FoundRule, Rule } from '../rule.ts';

const noEnginedata: JsonObject = {};

/** The content of a rule as JSON that is made once. */
export const preparedContent = preparedFor(({ content }: Rule) => content);

/** The public part of an enginedata as JSON that is made once. */
export const preparedEnginedata = preparedFor(publicData);
const preparedSchema = preparedFor((schema: JsonObject) => schema);

/** The members that the configuration adds to a page rule in answers. */
export interface ViewConfig {
  /** Prefix before `/svc1`. */
  readonly base: string;
  /** Origin of URLs in answers; undefined for that of the request. */
  readonly publicUrl: string | undefined;
  readonly engines: readonly {
    readonly name: string;
    readonly script: string | undefined;
    readonly reference: string | undefined;
  }[];
  /** The current schema of a table; undefined for an unknown one. */
  readonly schemaOf: (table: string) => JsonObject | undefined;
}

/**
 * The fields that the server adds to a page rule (docs/design/page-rules.md#fields): the URL of its
 * engine's documentation, and the schema of its table.
 */
export function serverFields(
  rule: Pick<Rule, 'engine' | 'table'>,
  { base, publicUrl, engines, schemaOf }: ViewConfig,
  origin: string,
): JsonObject {
  const engine = engines.find(({ name }) => name === rule.engine);
  const reference = engine?.reference ?? `${base}/svc1/engines/${rule.engine ?? ''}`;
  const schema = rule.table === undefined ? undefined : schemaOf(rule.table);
  return {
    ...(rule.engine !== undefined && {
      enginereference: new URL(reference, publicUrl ?? origin).href,
    }),
    ...(schema && { meta: schema }),
  };
}

/**
 * A page rule for the scope render: without its source, the headers for the source, comments,
 * access section and unknown fields.
 */
export function renderView({ stored, capture }: FoundRule): JsonObject {
  const { enginecomments: _comments, access: _access, ...more } = stored.rule;
  const { _unknowns_: _unknowns, ...rule } = more;
  const { enginedata, ...open } = rule;
  // Enginedata of these kinds is only for the server, which finds the answer by it.
  const isHidden = rule.kind === 'content.fetch' || rule.kind === 'resolve';
  const shown =
    isHidden || enginedata === undefined ? open : { ...open, enginedata: publicData(enginedata) };
  return {
    ...(shown as JsonObject),
    ...(capture !== undefined && { capture }),
    seq: stored.seq,
  };
}

/**
 * enginedata without members that may contain a secret (they may be from a former kind of the
 * rule), and without conditions and branches for other visitors.
 */
export function publicData(enginedata: JsonObject): JsonObject {
  const { source: _source, headers: _headers, when: _when, ...open } = enginedata;
  return open;
}

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
  const branch = chooseRenderBranch(renderWhen, stored, visit);
  return { enginedata: branch.answer(), matched: branch.name, dependencies };
}

/** As serverFields; the schema of a table may be large, so its JSON is made once. */
export function preparedServerFields(...given: Parameters<typeof serverFields>): object {
  const { meta, ...others } = serverFields(...given);
  return { ...others, ...(isJsonObject(meta) && { meta: preparedSchema(meta) }) };
}

/** The answer with data of a rule; a prepared one if all anonymous callers get the same. */
export function renderAnswer(
  data: object,
  { variesByLanguage }: Pick<FoundRule, 'variesByLanguage'>,
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
