import { maskedValue, replaceFormerHeaders } from '../../model/former-headers.ts';
import type { JsonObject } from '../../model/json.ts';
import { hasScope } from '../../model/key.ts';
import type { StoredRule } from '../../model/rule.ts';
import type { Reads } from '../../store/store.ts';
import type { Call } from '../operation.ts';

/** Shows fields that a page rule had once, or a row about it wrote. */
export type ShowFields = (id: string, fields: JsonObject) => JsonObject;

/**
 * Makes what shows the past of page rules to a caller: the scope read sees a header value that goes
 * to a source as long as the rule has it; who may write rules sees those of the past too.
 */
export function showPast(reads: Pick<Reads, 'rule'>, call: Pick<Call, 'caller'>): ShowFields {
  return (id, fields) => {
    const masked = replaceFormerHeaders(fields, reads.rule(id)?.rule, maskedValue);
    return masked === fields || hasScope(call.caller, 'design') ? fields : masked;
  };
}

/** A page rule of the past as showPast shows it. */
export function shownRule(stored: StoredRule, show: ShowFields): StoredRule {
  const fields = stored.rule as unknown as JsonObject;
  return { ...stored, rule: show(stored.rule.id, fields) as unknown as StoredRule['rule'] };
}
