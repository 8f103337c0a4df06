import type { Store } from '../../../core/log/store.ts';
import { defineOperation } from '../../../core/operations/operation.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { StaticOutput } from '../../../core/values/json/static.ts';
import { KIB } from '../../../core/values/units.ts';
import { isSecretField, maskedValue } from '../attempt.ts';
import { type Hook, isHookHeader } from '../hook.ts';
import type { NumberedAttempt } from '../log/deliveries.ts';
import { batchBody, cacheEventTexts, eachBody } from '../message.ts';
import {
  type MadeAttempt,
  attemptFacts,
  attemptProperties,
  isMade,
  messageProperties,
  messageView,
  nextAttemptMember,
  queueOf,
  requireHookScope,
} from './deliveries.ts';
import { placesOfDelivery } from './replay.ts';
import { deliveriesPart } from '../log/delivery-log.ts';
import { storedHooks } from '../log/family.ts';

/** Characters of a body in the answer for one message, and its attempts, the newest. */
const shownBodyCharactersMax = 64 * KIB;
const shownAttemptsMax = 100;

const headers = (description: string) =>
  ({
    type: 'array',
    description,
    items: {
      type: 'object',
      required: ['name', 'value'],
      properties: { name: { type: 'string' }, value: { type: 'string' } },
    },
  }) as const;

const output = {
  title: 'Delivery',
  type: 'object',
  required: ['id', 'seq', 'body', 'truncated', 'attempts'],
  properties: {
    ...messageProperties,
    body: { type: 'string', description: 'The content of its requests, or the beginning of it.' },
    truncated: { type: 'boolean', description: 'Whether `body` lacks the rest.' },
    next_attempt: nextAttemptMember,
    attempts: {
      type: 'array',
      description: 'The newest first.',
      items: {
        title: 'DeliveryAttempt',
        type: 'object',
        required: ['attempt', 'at', 'outcome', 'ms'],
        properties: {
          ...attemptProperties,
          method: { type: 'string', description: 'Method of the request.' },
          url: { type: 'string', description: 'URL of the request.' },
          headers: headers('Header fields of the request; values that may be secret are ***.'),
          answer_headers: headers('The first header fields of the answer, in the same way.'),
          answer: { type: 'string', description: 'The first 4 KiB of the answer’s content.' },
        },
      },
    },
  },
} as const;

type Delivery = StaticOutput<typeof output>;

/** A header field in an answer. */
type ShownField = StaticOutput<ReturnType<typeof headers>>[number];

/**
 * webhook.delivery: one message of a hook with its requests and their answers. The request is made
 * again from the log, so it costs no space. Refuses with `not_found`.
 */
export const readDelivery = defineOperation({
  name: 'svc1.webhook.delivery',
  scope: 'webhook',
  forHookKeys: true,
  effect: 'reads',
  summary: 'One message of a hook: its content, its requests, and what the receiver answered.',
  output,
  failures: ['not_found'],
  input: {
    type: 'object',
    required: ['id', 'delivery'],
    properties: {
      id: { type: 'string', description: 'The id of the hook.' },
      delivery: { type: 'string', description: 'The id of the message, or its seq.' },
    },
  },
  run:
    ({ store }: { readonly store: Store }) =>
    async ({ id, delivery }, { caller }) => {
      requireHookScope(caller, id);
      const attempts = attemptsAt(store, id, delivery);
      const [newest] = attempts;
      if (newest === undefined) {
        throw new Failure('not_found', 'The hook has sent no message with this id.', {
          field: 'delivery',
        });
      }
      const message = messageView(store, id, newest);
      const { dueAt } = newest;
      return {
        kind: 'data',
        data: {
          ...message,
          ...(await bodyOf(store, newest)),
          ...(dueAt !== undefined && { next_attempt: dueAt }),
          attempts: attempts
            .filter(isMade)
            .map((row) => attemptView(store, { hookId: id, messageId: message.id, row })),
        },
      };
    },
});

/** The attempts at a message, newest first; empty if the hook has sent no such message. */
function attemptsAt(store: Store, id: string, delivery: string): readonly NumberedAttempt[] {
  const queue = queueOf(store, id);
  const places = placesOfDelivery(store, queue, id, delivery);
  const n = places && store.part(deliveriesPart).messageWith(queue, places.first);
  if (n === undefined) return [];
  const rows: NumberedAttempt[] = [];
  for (const row of store.part(deliveriesPart).attempts(queue, n + 1)) {
    if (row.n !== n || rows.length === shownAttemptsMax) break;
    rows.push(row);
  }
  return rows;
}

/** The content of a message; of a long batch, its first events. */
async function bodyOf(
  { part }: Pick<Store, 'part'>,
  { n, logSeqs, batch }: NumberedAttempt,
): Promise<{ readonly body: string; readonly truncated: boolean }> {
  const deliveries = part(deliveriesPart);
  const textOf = cacheEventTexts((logSeq) => deliveries.event(logSeq));
  const [first = 0] = logSeqs;
  if (batch !== true) return shownBody(eachBody(textOf(first), n).toString(), false);
  let [count, bytes] = [0, 0];
  while (count < logSeqs.length && bytes <= shownBodyCharactersMax) {
    bytes += deliveries.eventBytes(logSeqs[count] ?? 0);
    count += 1;
  }
  const text = (await batchBody(logSeqs.slice(0, count), n, textOf)).toString();
  const isPart = count < logSeqs.length;
  return shownBody(isPart ? text.slice(0, text.lastIndexOf(']')) : text, isPart);
}

function shownBody(text: string, isPart: boolean) {
  const truncated = isPart || text.length > shownBodyCharactersMax;
  return { body: text.slice(0, shownBodyCharactersMax), truncated };
}

function attemptView(
  store: Pick<Store, 'of'>,
  {
    hookId,
    messageId,
    row,
  }: { readonly hookId: string; readonly messageId: string; readonly row: MadeAttempt },
): Delivery['attempts'][number] {
  const { answer, answerFields, hookSeq } = row;
  const sentFor =
    hookSeq === undefined ? undefined : store.of(storedHooks).hookAt(hookId, hookSeq)?.hook;
  return {
    ...attemptFacts(row),
    ...(sentFor !== undefined && {
      method: sentFor.method,
      url: sentFor.url,
      headers: requestFields(sentFor, messageId, row),
    }),
    ...(answerFields !== undefined && { answer_headers: fieldPairs(answerFields) }),
    ...(answer !== undefined && { answer }),
  };
}

/** The header fields of a request, in the order in which the sender writes them. */
function requestFields(
  { headers: own }: Pick<Hook, 'headers'>,
  messageId: string,
  { at }: Pick<NumberedAttempt, 'at'>,
): readonly ShownField[] {
  const sent = Object.entries(own).filter(([name, value]) => isHookHeader(name, value));
  const all = [
    ['Content-Type', 'application/json'],
    ...sent,
    ['webhook-id', messageId],
    ['webhook-timestamp', String(Math.floor(Date.parse(at) / 1000))],
    ['webhook-signature', ''],
    ['X-Service-HMAC', ''],
  ];
  return all.map(([name = '', value = '']) => ({
    name,
    value: isSecretField(name) ? maskedValue : value,
  }));
}

function fieldPairs(fields: readonly string[]): readonly ShownField[] {
  return fields.flatMap((name, at) =>
    at % 2 === 0 ? [{ name, value: fields[at + 1] ?? '' }] : [],
  );
}
