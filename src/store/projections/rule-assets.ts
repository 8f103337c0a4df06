import type { Rule } from '../../model/rule.ts';
import type { Databases } from '../databases.ts';
import { keyOf } from '../encoding.ts';
import type { Reads } from '../store.ts';

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
