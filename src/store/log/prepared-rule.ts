import type { JsonObject } from '../../model/json.ts';
import type { Rule } from '../../model/rule.ts';
import { seqMax } from '../encoding.ts';
import { indexEntryOf, rulePlace, type RulePlace } from '../projections/rule-index.ts';

/** The fields of a page rule as an insert stores them, without id and seq. */
export interface PreparedRule extends RulePlace {
  /** The fields, without id, as a JSON object that is not empty. */
  readonly text: string;
}

const langCharactersSafe = 100;
/** The greatest length of an id. */
const anyId = '00000000-0000-0000-0000-000000000000';

/**
 * Prepares the parts of an insert that do not need the store, in any thread. All checks happen
 * here, so a later decision cannot fail. Throws the Failures of indexEntryOf.
 */
export function prepareRule(fields: JsonObject): PreparedRule {
  const rule = { ...(fields as unknown as Omit<Rule, 'id'>), id: anyId };
  // lang is the only field without a limit of its own.
  if ((rule.lang?.length ?? 0) > langCharactersSafe) {
    indexEntryOf({ rule, seq: seqMax, insertedSeq: seqMax });
  }
  return { ...rulePlace(rule), text: JSON.stringify(fields) };
}
