import { statusOf } from '../../core/http/reply.ts';
import type { OperationDescription } from '../../core/operations/operation.ts';
import { problemsMember } from '../../core/operations/problems.ts';
import type { FailureCode } from '../../core/values/failure.ts';
import type { Json, JsonObject } from '../../core/values/json/json.ts';
import type { Scope } from '../../core/values/key.ts';

/** What both documents say about members that one side does not know. */
export const unknownMembersText =
  'An input field that an operation does not know is refused; the insert or edit of a record ' +
  'stores it in _unknowns_. Later versions may add members to answers.';

/** The meaning of each failure (docs/design/failures.md#failures). */
export const meanings: Readonly<Record<FailureCode, string>> = {
  invalid: 'The request is not valid; field names what is wrong with it.',
  unauthenticated: 'The operation needs an API key, or the sent one is unknown or revoked.',
  forbidden: 'The API key lacks the scope.',
  not_found: 'The record, page or operation does not exist.',
  method_not_allowed: 'The method is not one of those in Allow.',
  conflict: 'The vk was used before, for another request.',
  precondition_failed: 'The data has changed since the caller read it.',
  too_large: 'The request exceeds a limit.',
  unprocessable: 'The request is valid, but the server cannot carry it out.',
  rate_limited: 'Too many requests; Retry-After says when to try again.',
  internal: 'The server has a fault; its log has the details under the id.',
  bad_gateway: 'The source behind a page gave no usable answer.',
  gateway_timeout: 'The source behind a page took too long.',
  unavailable: 'Not possible now; Retry-After says when to try again.',
  storage_full: 'The disk of the server is full; operations that read still work.',
};

const codes = Object.keys(meanings) as FailureCode[];

/** The codes of failure that an operation may answer with, in the order of their statuses. */
export function failuresOf({
  scope,
  effect,
  failures = [],
}: OperationDescription): readonly FailureCode[] {
  const any: readonly FailureCode[] = [
    ...(['invalid', 'unauthenticated', 'too_large', 'rate_limited', 'internal'] as const),
    'unavailable',
    ...(scope === undefined ? [] : (['forbidden'] as const)),
    ...(effect === 'writes' ? (['storage_full'] as const) : []),
    ...failures,
  ];
  return codes.filter((code) => any.includes(code));
}

/** A code of failure with its meaning. */
export function meaningOf(code: FailureCode): string {
  return `\`${code}\`: ${meanings[code]}`;
}

/** The `error` member of an envelope. */
export const failure: JsonObject = {
  title: 'Failure',
  type: 'object',
  required: ['code', 'message', 'id'],
  properties: {
    code: {
      type: 'string',
      enum: codes,
      description: codes.map((code) => `- ${meaningOf(code)} (${statusOf[code]})`).join('\n'),
    },
    message: { type: 'string', description: 'What is wrong, and what to do.' },
    field: { type: 'string', description: 'The input field with the mistake.' },
    problems: {
      ...problemsMember,
      description: 'What is wrong with each field, if handling=strict refuses a write.',
    },
    id: { type: 'string', description: 'The id of the failure, also in the log of the server.' },
    docs: {
      type: 'string',
      description: 'The path of a page of the documentation, if one says more than the message.',
    },
  },
};

/** The members of an answer's envelope besides its `id`. */
export function answerMembers({ name, output, envelope }: OperationDescription): {
  readonly required: readonly string[];
  readonly properties: JsonObject;
} {
  return {
    required: ['r', 'data'],
    properties: {
      r: { const: name },
      data: output,
      ...(envelope?.vk !== undefined && {
        vk: { type: 'string', description: 'The idempotency key that was used.' },
        replayed: {
          const: true,
          description: 'This is the answer to an earlier request with the same vk.',
        },
      }),
    },
  };
}

/** The members of a request's envelope besides its `a` and `id`. */
export function requestMembers(operation: OperationDescription): {
  readonly required: readonly string[];
  readonly properties: JsonObject;
} {
  const v = shownInput(operation);
  const needed = ((v.required ?? []) as readonly Json[]).length > 0;
  return { required: needed ? ['v'] : [], properties: { v, ...envelopeMembers(operation) } };
}

/** The members of a request's envelope besides `v`. */
export function envelopeMembers({ envelope, inDrafts }: OperationDescription): JsonObject {
  return { ...envelope, ...(inDrafts === true && { draft: draftMember }) };
}

const draftMember: JsonObject = {
  type: 'string',
  description: 'The name or id of an open draft, to read or change it instead of the live state.',
};

/** The input of an operation as a caller should send it. */
export function shownInput({ input, fields }: OperationDescription): JsonObject {
  return fields ?? input;
}

/** Family of an operation: the second part of its name. */
export function familyOf({ name }: OperationDescription): string {
  return name.split('.')[1] ?? '';
}

/** Whether a caller without a key may call an operation. */
export function isOpen(
  { scope, tableDecides }: OperationDescription,
  anonymous: readonly Scope[],
): boolean {
  return (
    scope === undefined ||
    tableDecides === true ||
    anonymous.includes(scope) ||
    anonymous.includes('admin')
  );
}

/** The scope that an operation needs, in a sentence. */
export function scopeSentence({ scope, tableDecides, forHookKeys }: OperationDescription): string {
  if (tableDecides === true) {
    return `The table decides who may call it; by default it needs the scope \`${scope}\`.`;
  }
  if (forHookKeys === true) {
    return `Needs the scope \`${scope}\`, or \`verify:<id>\` for this hook alone.`;
  }
  return scope === undefined ? 'Every caller may call it.' : `Needs the scope \`${scope}\`.`;
}
