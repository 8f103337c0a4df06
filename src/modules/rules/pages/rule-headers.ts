import type { TemplateRequest } from '../../../core/http/field-template.ts';
import type { Reply } from '../../../core/http/reply.ts';
import {
  applyChanges,
  createFieldChanges,
  type FieldChanges,
} from '../../headers/response-headers.ts';
import type { Rule, RuleHeaders } from '../rule.ts';
import type { ExpectedReply, ReplyOrPromise } from '../../../core/pipeline/source.ts';

/** The changes of a rule, which live as long as its object: an edit makes a new one. */
const prepared = new WeakMap<RuleHeaders, FieldChanges>();

/** The reply of a page rule with the fields that its `headers` change. */
export function withRuleHeaders(
  { headers }: Rule,
  reply: ReplyOrPromise,
  request: TemplateRequest,
): ReplyOrPromise {
  if (headers === undefined) return reply;
  const change = (one: Reply | undefined) => one && withHeaders(headers, one, request);
  return reply instanceof Promise ? reply.then(change) : change(reply);
}

/** A reply with the fields that the `headers` of a page rule change. */
export function withHeaders(
  headers: RuleHeaders,
  reply: Reply,
  request: TemplateRequest,
): Reply | Promise<Reply> {
  let changes = prepared.get(headers);
  if (changes === undefined) {
    changes = createFieldChanges(linesOf(headers));
    prepared.set(headers, changes);
  }
  const all = changes;
  const { withNonce } = reply;
  const changed = applyChanges(reply, request, all);
  if (withNonce === undefined) return changed;
  const again = async (nonce: string) => applyChanges(await withNonce(nonce), request, all);
  return changed instanceof Promise
    ? changed.then((made) => ({ ...made, withNonce: again }))
    : { ...changed, withNonce: again };
}

/** Adds the names of the fields that a rule changes to what is known of its reply. */
export function withHeaderNote(
  { headers }: Pick<Rule, 'headers'>,
  expected: ExpectedReply,
): ExpectedReply {
  if (headers === undefined) return expected;
  const note = `Its headers change ${Object.keys(headers).join(', ')}.`;
  return { ...expected, notes: [...(expected.notes ?? []), note] };
}

/** The lines of headers: the second line of a list adds to the first one. */
function linesOf(headers: RuleHeaders): readonly string[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().flatMap((text, at) => {
      return [at === 0 || name.endsWith('[]') ? name : `${name}[]`, text];
    }),
  );
}
