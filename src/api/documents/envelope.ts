import type { FailureCode } from '../../model/failure.ts';
import { statusOf } from '../../http/status.ts';
import type { Json, JsonObject } from '../../model/json.ts';
import type { Scope } from '../../model/key.ts';
import type { OperationDescription } from '../operation.ts';
import { problemsMember } from '../problems.ts';

/** What each failure means to a caller (docs/design/failures.md#failures). */
const meanings: Readonly<Record<FailureCode, string>> = {
  invalid: 'The request is not valid; field names what is wrong with it.',
  unauthenticated: 'The operation needs an API key, or the one sent is not known.',
  forbidden: 'The API key lacks the scope.',
  not_found: 'There is no such thing.',
  method_not_allowed: 'The method is not one of those in Allow.',
  conflict: 'The vk was used before, for another request.',
  precondition_failed: 'Things have moved on since the caller looked.',
  too_large: 'The request is past a limit.',
  unprocessable: 'The request is valid, and cannot be carried out.',
  rate_limited: 'Too many requests; Retry-After says when to come again.',
  internal: 'Something went wrong on the server; its log has the details.',
  bad_gateway: 'The source behind a page gave no usable answer.',
  gateway_timeout: 'The source behind a page took too long.',
  unavailable: 'Not at the moment; Retry-After says when to come again.',
  storage_full: 'The disk of the server is full; reading goes on.',
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

/** What a status means, by the codes of failure that have it. */
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
    message: { type: 'string', description: 'What is wrong, and what to do about it.' },
    field: { type: 'string', description: 'The input field at fault.' },
    problems: {
      ...problemsMember,
      description: 'What is wrong with each field, where handling=strict refuses a write.',
    },
    id: { type: 'string', description: 'Also stands in the log of the server.' },
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
          description: 'Nothing was done: this is the answer to an earlier request with this vk.',
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
  return { required: needed ? ['v'] : [], properties: { v, ...operation.envelope } };
}

/** The input of an operation as a caller should send it. */
export function shownInput({ input, fields }: OperationDescription): JsonObject {
  return fields ?? input;
}

/** Family of an operation: the second part of its name. */
export function familyOf({ name }: OperationDescription): string {
  return name.split('.')[1] ?? '';
}

/** Whether a caller without a key may call an operation. */
export function isOpen({ scope }: OperationDescription, anonymous: readonly Scope[]): boolean {
  return scope === undefined || anonymous.includes(scope) || anonymous.includes('admin');
}

/** Who may call an operation, in a sentence. */
export function scopeSentence({ scope }: OperationDescription): string {
  return scope === undefined ? 'Anyone may call it.' : `Needs the scope \`${scope}\`.`;
}
