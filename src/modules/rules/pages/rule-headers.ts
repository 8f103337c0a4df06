import { whenReady } from '../../../core/values/when-ready.ts';
import { answerFieldName, fieldValue } from '../../../core/config/headers.ts';
import {
  type TemplateRequest,
  unknownVariable,
  variableWords,
} from '../../../core/http/field-template.ts';
import { setsOwnCookie } from '../../../core/http/own-cookies.ts';
import type { FieldList, Reply } from '../../../core/http/reply.ts';
import type { ProblemReason } from '../../../core/values/failure.ts';
import type { Json } from '../../../core/values/json/json.ts';
import { KIB } from '../../../core/values/units.ts';
import {
  applyChanges,
  createFieldChanges,
  type FieldChanges,
} from '../../headers/response-headers.ts';
import type { Rule, RuleHeaders } from '../rule.ts';
import type { ExpectedReply, ReplyOrPromise } from '../../../core/pipeline/source.ts';

/** The `headers` of a rule, and the fields of a branch. */
export const ruleHeadersBytesMax = 16 * KIB;

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
  return whenReady(reply, change);
}

/** A reply with the fields that the `headers` of a page rule change. */
export function withHeaders(
  headers: RuleHeaders,
  reply: Reply,
  request: TemplateRequest,
): Reply | Promise<Reply> {
  let changes = prepared.get(headers);
  if (changes === undefined) {
    changes = createFieldChanges(headerLines(headers));
    prepared.set(headers, changes);
  }
  const all = changes;
  const { withNonce } = reply;
  const changed = applyChanges(reply, request, all);
  if (withNonce === undefined) return changed;
  const again = async (nonce: string) => applyChanges(await withNonce(nonce), request, all);
  return whenReady(changed, (made) => ({ ...made, withNonce: again }));
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

/** The lines of headers for createFieldChanges: the second of a list adds to the first. */
export function headerLines(headers: RuleHeaders): FieldList {
  return Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().flatMap((text, at) => {
      return [at === 0 || name.endsWith('[]') ? name : `${name}[]`, text];
    }),
  );
}

/** Why a member of a rule's `headers` is not valid, in words that follow its name. */
export function ruleHeaderRefusal(
  written: string,
  given: Json,
): { readonly reason: ProblemReason; readonly words: string } | undefined {
  const named = answerFieldName(written.replace(/\[\]$/, ''));
  if ('refused' in named) return { reason: 'bad_format', words: `cannot be set: ${named.refused}` };
  const isCookie = /^set-cookie(?:\[\])?$/i.test(written);
  for (const text of [given].flat()) {
    if (isCookie && typeof text === 'string' && setsOwnCookie(text)) {
      return {
        reason: 'bad_format',
        words: 'cannot be set to this: the server sets that cookie itself',
      };
    }
    if (typeof text !== 'string') {
      return { reason: 'wrong_type', words: 'has to be a text, or a list of texts' };
    }
    const value = fieldValue(text);
    if ('refused' in value)
      return { reason: 'bad_format', words: `is not valid: ${value.refused}` };
    const unknown = unknownVariable(text);
    if (unknown !== undefined) {
      const words = `has the unknown variable ${unknown}; known are ${variableWords}`;
      return { reason: 'bad_format', words };
    }
  }
  return undefined;
}
