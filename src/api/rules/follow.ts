import { isRuleInside, type Bounds } from '../../model/bounds.ts';
import { originBytesMax, pathBytesMax } from '../../model/limits.ts';
import type { StoredRule } from '../../model/rule.ts';
import { requireInside } from '../bounds/rules.ts';
import { defineOperation } from '../operation.ts';
import { requireVisible, type PageParts } from './page-lookup.ts';
import { parsePlace, type Place } from './place.ts';
import { fromSeqProperty, streamFrom, type StreamedLog } from './stream.ts';

const packetName = 'svc1.userinterface.stale';
const seq = { type: 'integer', description: 'Position in the log.' } as const;

/**
 * userinterface.follow: the current seq, then a packet for each change of a page rule that covers a
 * place before or after it, and so may change the answer of get_render there. A packet only says
 * when to call get_render again, so that every visitor may have it who may see the place. Refuses
 * with `invalid`, also for a seq that the log has not reached, and as visibleRule.
 */
export const followPlace = defineOperation({
  name: 'svc1.userinterface.follow',
  scope: 'render',
  effect: 'streams',
  summary: 'Tells a running page when a page rule for its own origin and path has changed.',
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
    data: { title: 'Stale', type: 'object', required: ['seq'], properties: { seq } },
  },
  run:
    ({ store, site }: { readonly store: StreamedLog } & Pick<PageParts, 'site'>) =>
    async ({ from_seq: from, ...where }, call) => {
      const place = parsePlace(where);
      const { bounds } = call.caller;
      requireInside(call.caller, place);
      await requireVisible({ site }, place, call);
      return streamFrom(store, from, {
        family: 'userinterface',
        matches: ({ before, after }) =>
          covers(before, place, bounds) || covers(after, place, bounds),
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
  if (origin !== '*' && origin !== place.origin) return false;
  return path.endsWith('*') ? place.path.startsWith(path.slice(0, -1)) : place.path === path;
}
