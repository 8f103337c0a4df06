import type { AccessConfig } from '../../core/config/config.ts';
import type { Reads } from '../../core/log/store.ts';

/** Access sections that page rules name and the ini file does not have, in warnings. */
const missingSectionsMax = 100;

/** Page rules of such a section that a warning counts. */
const closedRulesCountedMax = 1_000;

/**
 * The page rules that are closed to everybody, because the ini file does not have the access
 * section that they name: a sentence for each such section.
 */
export function closedRuleWarnings(
  access: readonly Pick<AccessConfig, 'name'>[],
  reads: Pick<Reads, 'accessNames' | 'rulesOfAccess' | 'rule'>,
): readonly string[] {
  const known = new Set(access.map(({ name }) => name));
  const missing = reads
    .accessNames(missingSectionsMax + known.size)
    .filter((name) => !known.has(name));
  return missing.map((name) => {
    const ids = reads.rulesOfAccess(name, closedRulesCountedMax);
    const [id = ''] = ids;
    const { path = '' } = reads.rule(id)?.rule ?? {};
    const more = ids.length === closedRulesCountedMax ? ' or more' : '';
    const rules = ids.length === 1 ? 'A page rule names' : `${ids.length}${more} page rules name`;
    const closed = ids.length === 1 ? 'it is' : 'they are';
    return (
      `${rules} [access.${name}], which the ini file does not have, so ${closed} closed to ` +
      `everybody: ${ids.length === 1 ? '' : 'one is '}${path} (${id}). Add the section, or edit ` +
      'the access of the rules.'
    );
  });
}
