import { mergeFields, type Change } from '../model/change.ts';
import type { JsonObject } from '../model/json.ts';
import type { Key } from '../model/key.ts';
import type { Rule, StoredRule } from '../model/rule.ts';

/**
 * A page rule after one more change of its record: an insert's data are its fields, an edit's are
 * merged into them, an invalidate ends it. Throws on a change that cannot follow, which is a bug.
 */
export function foldRule(before: StoredRule | undefined, change: Change): StoredRule | undefined {
  const { id, seq, action, data } = change;
  switch (action) {
    case 'insert':
      if (before !== undefined) throw new Error(`${id} is inserted already`);
      return { rule: ruleOf(id, data), seq, insertedSeq: seq };
    case 'edit': {
      if (before === undefined) throw new Error(`${id} cannot be edited, it does not exist`);
      const { id: _id, ...fields } = before.rule;
      const merged = mergeFields(fields, data);
      return { rule: ruleOf(id, merged), seq, insertedSeq: before.insertedSeq };
    }
    case 'invalidate':
      return undefined;
  }
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
