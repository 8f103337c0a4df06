import type { Rule } from '../rule.ts';
import { namedMoment } from '../../../core/values/time.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { keyOf, storedJson } from '../../../core/log/encoding.ts';
import type { Reads, RuleTime } from '../../../core/log/store.ts';

/** The names of the fields that limit when a rule answers, in the order of their meaning. */
const limits = ['from', 'until'] as const;

/** The keys of a rule in `ruletime`: moment, field and id, so that their order is that of time. */
export function ruleTimeKeys(rule: Rule): readonly Buffer[] {
  return limits.flatMap((name) => {
    const stored = rule[name];
    return stored === undefined ? [] : [timeKey(namedMoment(stored).at, `${name} ${rule.id}`)];
  });
}

/** A key that begins with a moment, which has 24 characters for each year from 0000 to 9999. */
function timeKey(at: string, rest: string): Buffer {
  return Buffer.from(`${at} ${rest}`);
}

/** Creates the reads of the times at which page rules begin and cease to answer. */
export function createRuleTimeReads({
  ruletime,
  rule,
}: Pick<Databases, 'ruletime' | 'rule'>): Pick<Reads, 'nextRuleTimeMs' | 'ruleTimes'> {
  return {
    nextRuleTimeMs(nowMs) {
      // Keys of this moment are greater than it.
      const after = timeKey(new Date(nowMs + 1).toISOString(), '');
      const [next] = ruletime.getKeys({ start: after, limit: 1 });
      return next && Date.parse(partsOf(next).at);
    },
    *ruleTimes({ from, after, until }) {
      const start = Buffer.from(after ?? from);
      for (const key of ruletime.getKeys({ start })) {
        const { cursor, at, field, id } = partsOf(key);
        if (cursor === after) continue;
        if (until !== undefined && at >= until) return;
        const text = rule.get(keyOf(id));
        if (text === undefined) continue;
        const stored = storedJson(text) as RuleTime['stored'];
        yield { cursor, at, field, stored, size: text.length };
      }
    },
  };
}

function partsOf(key: Uint8Array): Omit<RuleTime, 'stored' | 'size'> & { readonly id: string } {
  const cursor = Buffer.from(key).toString();
  const [at = '', field, id = ''] = cursor.split(' ');
  return { cursor, at, field: field === 'from' ? 'from' : 'until', id };
}
