import type { Change } from '../../../core/log/change.ts';
import type { Decision, LoggedDraft, Reads } from '../../../core/log/store.ts';
import {
  type OperationResult,
  changeAuthorOf,
  defineOperation,
} from '../../../core/operations/operation.ts';
import { identifyRequest } from '../../../core/operations/records/idempotency.ts';
import { vkMember } from '../../../core/operations/records/schema.ts';
import type { StaticOutput } from '../../../core/values/json/static.ts';
import { type HookParts, existingHook, secretDraft } from './hook-family.ts';
import { secretSchema } from './hook-schema.ts';
import { storedHooks } from '../log/family.ts';

/** How long messages are also signed with a replaced secret. */
const hookSecretOverlapMs = 86_400_000;

/** The parts that webhook.rotate needs. */
interface RotateParts extends Pick<HookParts, 'store' | 'newSecret'> {
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const rotatedSecret = {
  title: 'RotatedSecret',
  type: 'object',
  required: ['id', 'seq'],
  properties: {
    id: { type: 'string' },
    seq: { type: 'integer', description: 'Version of the hook.' },
    secret: secretSchema,
    previous_until: {
      type: 'string',
      format: 'date-time',
      description: 'Until when the former secret signs as well.',
    },
  },
} as const;

type RotatedSecret = StaticOutput<typeof rotatedSecret>;

/**
 * webhook.rotate: gives a hook a new secret, which only this answer shows; the former one signs as
 * well for 24 hours (docs/design/webhooks.md#registration). Refuses with `not_found`, or with
 * `conflict` (the vk was used for another request).
 */
export const rotateSecret = defineOperation({
  name: 'svc1.webhook.rotate',
  scope: 'webhook',
  effect: 'writes',
  summary: 'Gives a hook a new secret; for 24 hours the former one signs as well.',
  input: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } },
  envelope: { vk: vkMember },
  output: rotatedSecret,
  failures: ['not_found', 'conflict'],
  run:
    ({ store, newSecret, now }: RotateParts) =>
    ({ id }, call) => {
      const { vk } = call;
      const request = identifyRequest('webhook.rotate', { id }, call);
      return store.commit(
        changeAuthorOf(call),
        (reads): Decision<OperationResult<RotatedSecret>> => {
          const earlier = vk === undefined ? undefined : request.earlier(reads, vk);
          const first = earlier && reads.change(earlier.seq);
          if (first !== undefined) {
            return { drafts: [], answer: () => rotateAnswer(reads, first, { vk, replayed: true }) };
          }
          existingHook(reads, id);
          const secret = newSecret();
          const rotatedAt = new Date(now()).toISOString();
          const until = new Date(now() + hookSecretOverlapMs).toISOString();
          const claim = vk === undefined ? {} : { vk: request.claim(vk) };
          const drafts: readonly LoggedDraft[] = [
            // The history of the hook shows the rotation. Reverting it restores no former secret.
            { family: 'webhook', id, action: 'edit', data: { rotated_at: rotatedAt }, ...claim },
            secretDraft(id, { secret, until }),
          ];
          return {
            drafts,
            answer: ([change]) =>
              rotateAnswer(reads, change, { vk, replayed: false, secret, until }),
          };
        },
      );
    },
});

function rotateAnswer(
  reads: Pick<Reads, 'of'>,
  change: Change | undefined,
  {
    vk,
    replayed,
    secret,
    until,
  }: {
    readonly vk: string | undefined;
    readonly replayed: boolean;
    readonly secret?: string;
    readonly until?: string;
  },
): OperationResult<RotatedSecret> {
  if (change === undefined) throw new TypeError('the store logged no change');
  const { id, seq } = change;
  const previousUntil = until ?? reads.of(storedHooks).hookSecret(id)?.until;
  return {
    kind: 'data',
    data: {
      id,
      seq,
      ...(secret !== undefined && { secret }),
      ...(previousUntil !== undefined && { previous_until: previousUntil }),
    },
    ...(vk !== undefined && { vk }),
    ...(replayed && { replayed }),
  };
}
