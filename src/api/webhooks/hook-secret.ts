import type { Change } from '../../model/change.ts';
import { hookSecretOverlapMs } from './limits.ts';
import type { Decision, LoggedDraft, Reads } from '../../store/store.ts';
import { existingHook, secretDraft, type HookOperations } from './hooks.ts';
import { rotateDescription } from './hooks-description.ts';
import { authorOf, type Handler, type OperationResult } from '../operation.ts';
import { idempotency } from '../records/versions.ts';

/**
 * webhook.rotate: gives a hook a new secret and shows it this one time; the one before it signs too
 * for 24 hours (docs/design/webhooks.md#registration). Refuses with `not_found`, or with `conflict`
 * (the vk was used for another request).
 */
export function rotateSecret(parts: HookOperations): Handler<{ id: string }> {
  const { store, newSecret, now } = parts;
  return {
    ...rotateDescription,
    input: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } },
    run: ({ id }, call) => {
      const { vk } = call;
      const write = idempotency('webhook.rotate', { id }, call);
      return store.commit(authorOf(call), (reads): Decision<OperationResult> => {
        const earlier = vk === undefined ? undefined : write.earlier(reads, vk);
        const first = earlier && reads.change(earlier.seq);
        if (first !== undefined) {
          return { drafts: [], answer: () => rotated(reads, first, { vk, replayed: true }) };
        }
        existingHook(reads, id);
        const secret = newSecret();
        const rotatedAt = new Date(now()).toISOString();
        const until = new Date(now() + hookSecretOverlapMs).toISOString();
        const claim = vk === undefined ? {} : { vk: write.claim(vk) };
        const drafts: readonly LoggedDraft[] = [
          // The history of the hook tells of it, and taking that back does not bring a secret back.
          { family: 'webhook', id, action: 'edit', data: { rotated_at: rotatedAt }, ...claim },
          secretDraft(id, { secret, until }),
        ];
        return {
          drafts,
          answer: ([change]) => rotated(reads, change, { vk, replayed: false, secret, until }),
        };
      });
    },
  };
}

function rotated(
  reads: Pick<Reads, 'hookSecret'>,
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
): OperationResult {
  if (change === undefined) throw new TypeError('a draft was not logged');
  const { id, seq } = change;
  const previousUntil = until ?? reads.hookSecret(id)?.until;
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
