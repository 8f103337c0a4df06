import type { JsonObject } from '../model/json.ts';
import type { Rule } from '../model/rule.ts';
import { candidatePlace, rulePlace, type RulePlace } from './candidates.ts';
import { seqMax } from './key-bytes.ts';

/** The fields of a page rule as an insert stores them, but for what depends on id and log. */
export interface ReadyRule extends RulePlace {
  /** The fields, without id, as a JSON object that is not empty. */
  readonly text: string;
}

const langCharactersSafe = 100;
/** As long as an id of ours gets. */
const anyId = '00000000-0000-0000-0000-000000000000';

/**
 * Makes ready what can be made without the store, in any thread: all that a decision could be
 * refused for is refused here. Throws the Failures of candidatePlace.
 */
export function readyRule(fields: JsonObject): ReadyRule {
  const rule = { ...(fields as unknown as Omit<Rule, 'id'>), id: anyId };
  // Of all fields only lang has no limit of its own.
  if ((rule.lang?.length ?? 0) > langCharactersSafe) {
    candidatePlace({ rule, seq: seqMax, insertedSeq: seqMax });
  }
  return { ...rulePlace(rule), text: JSON.stringify(fields) };
}
