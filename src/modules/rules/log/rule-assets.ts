import type { Rule } from '../rule.ts';
import type { StoredRule } from '../rule.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { draftEntryKey, draftEntryValue, draftsWith } from '../../drafts/log/draft-entries.ts';
import { keyOf, storedJson } from '../../../core/log/encoding.ts';
import type { Reads } from '../../../core/log/store.ts';

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
}: Pick<Databases, 'ruleasset'>): Pick<Reads, 'rulesOfAsset'> {
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
