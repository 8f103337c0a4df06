import type { Databases } from '../../../core/log/databases.ts';
import { keyOf, storedJson } from '../../../core/log/encoding.ts';
import type { RuleReads, RuleTime } from './reads.ts';
import { namedMoment } from '../../../core/values/time.ts';
import { draftEntryKey, draftEntryValue, draftsWith } from '../../drafts/log/draft-entries.ts';
import type { Rule, StoredRule } from '../rule.ts';

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
}: Pick<Databases, 'ruletime' | 'rule'>): Pick<RuleReads, 'nextRuleTimeMs' | 'ruleTimes'> {
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

/** The keys of a rule in `ruleasset`: the name of its asset, an end of it, and the id. */
export function ruleAssetKeys({ asset, id }: Rule): readonly Buffer[] {
  return asset === undefined ? [] : [assetKey(asset, id)];
}

/** No name of an asset has the character that ends it here. */
function assetKey(asset: string, rest: string): Buffer {
  return keyOf(`${asset}\0${rest}`);
}

/** Creates the read of the page rules that name an asset. */
export function createRuleAssetReads({
  ruleasset,
}: Pick<Databases, 'ruleasset'>): Pick<RuleReads, 'rulesOfAsset'> {
  return {
    *rulesOfAsset(asset, limit) {
      const start = assetKey(asset, '');
      const end = keyOf(`${asset}\u0001`);
      for (const key of ruleasset.getKeys({ start, end, limit })) {
        yield Buffer.from(key).toString('utf8', start.length);
      }
    },
  };
}

/** Fills `ruleasset` from the page rules of a layout without it, live and in drafts. */
export function putRuleAssets(
  databases: Pick<Databases, 'rule' | 'ruleasset' | 'draftentry'>,
): void {
  const { rule, ruleasset, draftentry } = databases;
  for (const { value } of rule.getRange()) {
    for (const key of assetKeysIn(value)) ruleasset.putSync(key, '');
  }
  for (const { draft, key, value } of [...draftsWith(draftentry, 'rule')]) {
    const names = new Map(assetKeysIn(rule.get(key)).map((one) => [one.toString(), false]));
    for (const one of assetKeysIn(value)) names.set(one.toString(), true);
    for (const [name, isPut] of names) {
      const entry = { key: Buffer.from(name), value: '', isPut };
      const own = draftEntryKey(draft, 'ruleasset', entry);
      draftentry.putSync(own, draftEntryValue('ruleasset', entry));
    }
  }
}

function assetKeysIn(stored: string | undefined): readonly Buffer[] {
  if (stored?.includes('"asset"') !== true) return [];
  return ruleAssetKeys((storedJson(stored) as StoredRule).rule);
}
