import { originBytesMax, pathBytesMax } from '../../model/limits.ts';
import type { StoredRule } from '../../model/rule.ts';
import type { Description, Handler } from '../operation.ts';
import { parsePlace, type Place } from './place.ts';
import { fromSeqProperty, streamFrom, type StreamedLog } from './stream.ts';

interface FollowInput {
  origin: string;
  path: string;
  from_seq?: number;
}

const packetName = 'svc1.userinterface.stale';
const seq = { type: 'integer', description: 'Position in the log.' } as const;

const description: Description = {
  summary: 'Tells a running page when a page rule for its own origin and path has changed.',
  output: {
    title: 'Followed',
    type: 'object',
    required: ['seq'],
    properties: { seq: { ...seq, description: 'The newest change of now.' } },
  },
  packets: {
    r: packetName,
    data: { title: 'Stale', type: 'object', required: ['seq'], properties: { seq } },
  },
};

/**
 * userinterface.follow: the seq of now, then a packet for each change of a page rule that covers a
 * place before or after it, and so may change what get_render answers there: one that comes, goes,
 * or moves away too. A packet says when to ask again and nothing of the rule, so that visitors may
 * have it. Refuses with `invalid`, also for a seq that the log has not reached.
 */
export function followPlace({ store }: { readonly store: StreamedLog }): Handler<FollowInput> {
  return {
    ...description,
    input: {
      type: 'object',
      required: ['origin', 'path'],
      properties: {
        origin: { type: 'string', maxLength: originBytesMax },
        path: { type: 'string', minLength: 1, maxLength: pathBytesMax },
        from_seq: fromSeqProperty,
      },
    },
    run: ({ from_seq: from, ...where }) => {
      const place = parsePlace(where);
      return streamFrom(
        store,
        from,
        ({ before, after }) => covers(before, place) || covers(after, place),
      );
    },
    packet: ({ change }) => ({ r: packetName, data: { seq: change.seq } }),
  };
}

/**
 * Whether a rule is a candidate for a place (docs/design/page-rules.md#matching), whatever its
 * language or kind.
 */
function covers(stored: StoredRule | undefined, place: Place): boolean {
  if (stored === undefined) return false;
  const { origin, path } = stored.rule;
  if (origin !== '*' && origin !== place.origin) return false;
  return path.endsWith('*') ? place.path.startsWith(path.slice(0, -1)) : place.path === path;
}
