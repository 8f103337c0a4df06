import type { RecordChange } from '../../../core/log/store.ts';
import { originsOf } from '../rule.ts';
import { coversOrigin } from '../../../core/values/network/origin-pattern.ts';
import { isRuleInside, type Bounds } from '../../../core/values/bounds.ts';
import { originBytesMax, pathBytesMax } from '../../../core/values/limits.ts';
import type { StoredRule } from '../rule.ts';
import { requireInside } from '../bounds/rules.ts';
import { coversPath } from '../../../core/values/path.ts';
import { defineOperation } from '../../../core/operations/operation.ts';
import { requireVisible, type PageParts } from './page-lookup.ts';
import { parsePlace, type Place } from '../../../core/operations/place.ts';
import {
  fromSeqProperty,
  streamFrom,
  type StreamedLog,
} from '../../../core/operations/records/stream.ts';
import { ruleMoments, type TimedLog } from './time-notices.ts';

const packetName = 'svc1.userinterface.stale';
const seq = { type: 'integer', description: 'Position in the log.' } as const;
const at = {
  type: 'string',
  format: 'date-time',
  description: 'When a page rule has begun or ended by its from or until; absent for a change.',
} as const;

/**
 * userinterface.follow: the current seq, then a packet for each change of a page rule that covers a
 * place before or after it, and for each time at which one begins or ceases to answer: both may
 * change the answer of get_render there. A packet only says when to call get_render again, so that
 * every visitor may have it who may see the place. Refuses with `invalid`, also for a seq that the
 * log has not reached, and as visibleRule.
 */
export const followPlace = defineOperation({
  name: 'svc1.userinterface.follow',
  scope: 'render',
  effect: 'streams',
  summary:
    'Tells a running page when a page rule for its own origin and path has changed, has begun to ' +
    'answer, or has ended.',
  input: {
    type: 'object',
    required: ['origin', 'path'],
    properties: {
      origin: { type: 'string', maxLength: originBytesMax },
      path: { type: 'string', minLength: 1, maxLength: pathBytesMax },
      from_seq: fromSeqProperty,
    },
  },
  output: {
    title: 'Followed',
    type: 'object',
    required: ['seq'],
    properties: { seq: { ...seq, description: 'The newest change now.' } },
  },
  packets: {
    r: packetName,
    data: { title: 'Stale', type: 'object', required: ['seq'], properties: { seq, at } },
  },
  run:
    ({ store, site, now }: { readonly store: StreamedLog } & TimedLog & Pick<PageParts, 'site'>) =>
    async ({ from_seq: from, ...where }, call) => {
      const place = parsePlace(where);
      const { bounds } = call.caller;
      requireInside(call.caller, place);
      await requireVisible({ site }, place, call);
      const isCovered = (stored: StoredRule | undefined) => covers(stored, place, bounds);
      return streamFrom(store, from, {
        family: 'userinterface',
        matches: ({ before, after }: RecordChange<StoredRule>) =>
          isCovered(before) || isCovered(after),
        others: async function* moments(signal) {
          for await (const moment of ruleMoments({ store, now }, isCovered, signal)) {
            yield { r: packetName, data: { seq: store.seq(), at: moment } };
          }
        },
      });
    },
  packet:
    () =>
    ({ change }) => ({ r: packetName, data: { seq: change.seq } }),
});

/** Whether a rule inside of bounds covers a place, in any language and kind. */
function covers(stored: StoredRule | undefined, place: Place, bounds: Bounds | undefined): boolean {
  if (stored === undefined || !isRuleInside(bounds, stored.rule)) return false;
  const { origin, path } = stored.rule;
  if (!originsOf(origin).some((one) => coversOrigin(one, place.origin))) return false;
  return coversPath(path, place.path);
}
