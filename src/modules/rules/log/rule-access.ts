import { unknownSection } from '../../../core/pipeline/place-access.ts';
import { accessOf, type Rule } from '../rule.ts';
import type { Databases } from '../../../core/log/databases.ts';
import type { RuleReads } from './reads.ts';

/** The key of a rule in `ruleaccess`, if it names an access section. */
export function ruleAccessKeys(rule: Rule): readonly Buffer[] {
  const name = accessOf(rule);
  return name === undefined || name === unknownSection ? [] : [Buffer.from(`${name}\0${rule.id}`)];
}

/** Creates the reads of the access sections that page rules name. */
export function createRuleAccessReads({
  ruleaccess,
}: Pick<Databases, 'ruleaccess'>): Pick<RuleReads, 'accessNames' | 'rulesOfAccess'> {
  return {
    accessNames(limit) {
      const names: string[] = [];
      let start = Buffer.alloc(0);
      while (names.length < limit) {
        const [key] = ruleaccess.getKeys({ start, limit: 1 });
        if (key === undefined) break;
        const { name } = partsOf(key);
        names.push(name);
        // NUL separates name and id, so this key is behind all rules of the name.
        start = Buffer.from(`${name}\u{1}`);
      }
      return names;
    },
    rulesOfAccess(name, limit) {
      const [start, end] = [Buffer.from(`${name}\0`), Buffer.from(`${name}\u{1}`)];
      return [...ruleaccess.getKeys({ start, end, limit })].map((key) => partsOf(key).id);
    },
  };
}

function partsOf(key: Uint8Array): { readonly name: string; readonly id: string } {
  const [name = '', id = ''] = Buffer.from(key).toString().split('\0');
  return { name, id };
}
