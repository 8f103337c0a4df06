import type { FoundRule } from '../rule.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import type { Rule } from '../rule.ts';

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
