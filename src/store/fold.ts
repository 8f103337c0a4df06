import { mergeFields, type Change } from '../model/change.ts';
import type { JsonObject } from '../model/json.ts';
import type { Key } from '../model/key.ts';
import type { Rule, StoredRule } from '../model/rule.ts';

/** What the rows of one page rule come to. */
export interface Folded {
  /** The record after its newest row; undefined where no insert of it counts. */
  readonly stored: StoredRule | undefined;
  /** Seqs of the rows that do not count, each with the row that invalidated it. */
  readonly invalidated: ReadonlyMap<number, Change>;
}

/**
 * Folds all rows of a page rule, oldest first (contract §4.3): a row that an invalidate names does
 * not count, unless that has been invalidated itself.
 */
export function foldRows(rows: readonly Change[]): Folded {
  const invalidated = new Map<number, Change>();
  for (const row of rows.toReversed()) {
    if (row.action !== 'invalidate' || invalidated.has(row.seq)) continue;
    for (const seq of rowsNamed(row)) invalidated.set(seq, row);
  }
  let stored: StoredRule | undefined;
  for (const row of rows) {
    if (row.action === 'invalidate' || invalidated.has(row.seq)) continue;
    // Without its insert there is nothing to edit.
    if (row.action === 'insert' || stored !== undefined) stored = foldRule(stored, row);
  }
  const newest = rows.at(-1);
  return { stored: stored && newest && { ...stored, seq: newest.seq }, invalidated };
}

/** The seqs that an invalidate of a page rule names. */
export function rowsNamed({ seq, data }: Change): readonly number[] {
  const { rows } = data;
  if (!Array.isArray(rows)) throw new Error(`change ${seq} invalidates no rows`);
  return rows.filter((row) => typeof row === 'number' && row < seq) as number[];
}

/**
 * A page rule after one more insert or edit: an insert's data are its fields, an edit's are merged
 * into them. Throws on a change that cannot follow, which is a bug.
 */
export function foldRule(before: StoredRule | undefined, change: Change): StoredRule {
  const { id, seq, action, data } = change;
  if (action === 'insert') {
    if (before !== undefined) throw new Error(`${id} is inserted already`);
    return { rule: ruleOf(id, data), seq, insertedSeq: seq };
  }
  if (before === undefined) throw new Error(`${id} cannot be edited, it does not exist`);
  const { id: _id, ...fields } = before.rule;
  return { rule: ruleOf(id, mergeFields(fields, data)), seq, insertedSeq: before.insertedSeq };
}

/** A key after one more change of its record, as for rules; an invalidate revokes it. */
export function foldKey(before: Key | undefined, change: Change): Key | undefined {
  const { id, action, data } = change;
  switch (action) {
    case 'insert':
      if (before !== undefined) throw new Error(`${id} is inserted already`);
      return { id, ...data } as unknown as Key;
    case 'edit':
      if (before === undefined) throw new Error(`${id} cannot be edited, it does not exist`);
      return mergeFields(before as unknown as JsonObject, data) as unknown as Key;
    case 'invalidate':
      return undefined;
  }
}

function ruleOf(id: string, fields: JsonObject): Rule {
  for (const name of ['origin', 'path', 'kind']) {
    if (typeof fields[name] !== 'string') throw new Error(`${id} has no ${name}`);
  }
  return { id, ...fields } as unknown as Rule;
}
