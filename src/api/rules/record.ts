import { createHash } from 'node:crypto';
import type { FoundRule, Rule, StoredRule } from '../../model/rule.ts';
import type { JsonObject } from '../../model/json.ts';

/** What the configuration adds to a record that is shown. */
export interface ViewConfig {
  /** Prefix before `/svc1`. */
  readonly base: string;
  /** Origin of URLs handed out; undefined means that of the request. */
  readonly publicUrl: string | undefined;
  readonly engines: readonly {
    readonly name: string;
    readonly script: string | undefined;
    readonly reference: string | undefined;
  }[];
  readonly tables: readonly { readonly name: string; readonly schema: JsonObject }[];
}

/**
 * A page rule as the scope read sees it: all its fields, the server's own, and the seq that if_seq
 * asks for.
 */
export function recordView(stored: StoredRule, config: ViewConfig, origin: string): JsonObject {
  return { ...asJson(stored.rule), ...serverFields(stored.rule, config, origin), seq: stored.seq };
}

/**
 * The server's own fields of a rule (docs/design/page-rules.md#fields): where its engine is
 * documented, what its table holds.
 */
export function serverFields(
  rule: Pick<Rule, 'engine' | 'table'>,
  { base, publicUrl, engines, tables }: ViewConfig,
  origin: string,
): JsonObject {
  const engine = engines.find(({ name }) => name === rule.engine);
  const reference = engine?.reference ?? `${base}/svc1/engines/${rule.engine ?? ''}`;
  const table = tables.find(({ name }) => name === rule.table);
  return {
    ...(rule.engine !== undefined && {
      enginereference: new URL(reference, publicUrl ?? origin).href,
    }),
    ...(table && { meta: table.schema }),
  };
}

/**
 * A page rule as the scope render sees it: no source, no header sent to it, no comment, nothing
 * unknown.
 */
export function renderView({ stored, capture }: FoundRule): JsonObject {
  const { enginecomments: _comments, _unknowns_: _unknowns, ...rule } = stored.rule;
  const { enginedata, ...open } = rule;
  // Of these kinds enginedata says how the server finds its answer, nothing that a page could
  // render.
  const hidden = rule.kind === 'content.fetch' || rule.kind === 'resolve';
  return {
    ...asJson(
      hidden || enginedata === undefined ? open : { ...open, enginedata: publicData(enginedata) },
    ),
    ...(capture !== undefined && { capture }),
    seq: stored.seq,
  };
}

/**
 * enginedata without the members that may hold a secret, whatever the kind was when they were
 * written, and without conditions and what they would show to others.
 */
export function publicData(enginedata: JsonObject): JsonObject {
  const { source: _source, headers: _headers, when: _when, ...open } = enginedata;
  return open;
}

/**
 * The strong validator of a rule as recordView shows it: its seq and, where the configuration adds
 * to it, what that comes to. requireSeq looks at the seq alone.
 */
export function recordEtag(stored: StoredRule, config: ViewConfig, origin: string): string {
  const added = serverFields(stored.rule, config, origin);
  const isPlain = Object.keys(added).length === 0;
  return isPlain ? `"${stored.seq}"` : `"${stored.seq}-${etagOf(added).slice(1)}`;
}

/** The strong validator of a JSON answer. */
function etagOf(data: unknown): string {
  return etagOfDigest(createHash('sha256').update(JSON.stringify(data)).digest('base64url'));
}

/** The strong validator of what a digest stands for. */
export function etagOfDigest(digest: string): string {
  return `"${digest.slice(0, etagCharacters)}"`;
}

const etagCharacters = 27;

function asJson(rule: object): JsonObject {
  return rule as JsonObject;
}
