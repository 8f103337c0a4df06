import { type Reply, withVary } from '../../../core/http/reply.ts';
import type { ReplyOrPromise } from '../../../core/pipeline/source.ts';
import { type Failure, failureFrom } from '../../../core/values/failure.ts';
import { whenReady } from '../../../core/values/when-ready.ts';
import { type FoundRule, type Rule, ruleName } from '../rule.ts';

/** A failure with the name of its rule as its source, as in a reply of the rule. */
export function failureOf({ id }: Pick<Rule, 'id'>, thrown: unknown): Failure {
  return failureFrom(thrown).of(ruleName(id));
}

/** The reply of a rule; what it throws is a failure of the rule that answers then. */
export function withRuleFailure(
  ruleThen: () => Pick<Rule, 'id'>,
  respond: () => ReplyOrPromise,
): ReplyOrPromise {
  const fail = (thrown: unknown): never => {
    throw failureOf(ruleThen(), thrown);
  };
  try {
    const answer = respond();
    return answer instanceof Promise ? answer.catch(fail) : answer;
  } catch (thrown) {
    return fail(thrown);
  }
}

/** Adds Vary if Accept-Language has chosen the rule (RFC 9110 §12.5.5). */
export function withLanguageVary(
  { variesByLanguage }: Pick<FoundRule, 'variesByLanguage'>,
  answer: Reply | Promise<Reply>,
): Reply | Promise<Reply> {
  return variesByLanguage ? whenReady(answer, addLanguageVary) : answer;
}

function addLanguageVary(reply: Reply): Reply {
  return { ...reply, fields: withVary(reply.fields, 'Accept-Language') };
}
