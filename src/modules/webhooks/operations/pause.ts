import { defineOperation, type OperationDefinition } from '../../../core/operations/operation.ts';
import type { FamilyCall } from '../../../core/operations/records/family.ts';
import { identifyRequest } from '../../../core/operations/records/idempotency.ts';
import { ifSeqProperty, recordSchemas, vkMember } from '../../../core/operations/records/schema.ts';
import { changeRecord } from '../../../core/operations/records/write.ts';
import { hookFamily, requireNothingWaiting, type HookParts } from './hook-family.ts';
import { placeHookFields } from './hook-placement.ts';

/** webhook.pause: stops deliveries of a hook. Refuses with `not_found` or `conflict` (the vk). */
export const pauseHook = switchOperation({
  name: 'webhook.pause',
  active: false,
  summary: 'Stops the deliveries of a hook; its events wait.',
});

/**
 * webhook.resume: delivers the events that wait, and new ones. Refuses with `not_found`, or with
 * `conflict` (the vk, or a field of the hook is not valid).
 */
export const resumeHook = switchOperation({
  name: 'webhook.resume',
  active: true,
  summary: 'Resumes the deliveries of a hook, beginning with the events that wait.',
});

function switchOperation({
  name,
  active,
  summary,
}: {
  readonly name: string;
  readonly active: boolean;
  readonly summary: string;
}): OperationDefinition<HookParts> {
  return defineOperation({
    name: `svc1.${name}`,
    scope: 'webhook',
    effect: 'writes',
    summary,
    input: {
      type: 'object',
      required: ['id'],
      properties: {
        id: { type: 'string', description: 'The id of the hook.' },
        if_seq: { ...ifSeqProperty, nullable: true },
      },
    },
    envelope: { vk: vkMember },
    output: recordSchemas(hookFamily.schema).written,
    etag: true,
    failures: ['not_found', 'conflict', 'precondition_failed'],
    run:
      (parts: HookParts) =>
      ({ id, if_seq: ifSeq }, call) => {
        const request = identifyRequest(name, { id }, call);
        const given: FamilyCall = { operation: 'edit', v: { id }, call };
        const edit = { idIn: () => id, given, ifSeq, sent: {}, request };
        return changeRecord(hookFamily, parts, call, edit, {
          dataOf({ record }) {
            if (active) requireNothingWaiting(record);
            return placeHookFields({ current: record, sent: { active } });
          },
        });
      },
  });
}
