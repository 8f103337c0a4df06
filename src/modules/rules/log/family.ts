import type { RuleReads } from './reads.ts';
import { createRuleReads } from './rule-reads.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { keyOf } from '../../../core/log/encoding.ts';
import { type IndexEntry, putSeveralMarks } from '../../../core/log/index-entries.ts';
import type {
  ReadFamily,
  Planning,
  FamilyProjection,
  SharedPlan,
} from '../../../core/log/store.ts';
import { type StoredRule, foldRule } from '../rule.ts';
import { ruleAccessKeys } from './rule-access.ts';
import { formerEntries, indexEntriesOf } from './rule-index.ts';
import { putRuleAssets, ruleAssetKeys, ruleTimeKeys } from './rule-lookups.ts';

/** The first layout in which keys with several candidates are marked: see index-entries.ts. */
const markedVersion = 5;

/** The first layout with the databases of the assets and access sections of page rules. */
const namesVersion = 9;

/** The databases that have keys of page rules and no values. */
const ruleKeys = [
  ['ruletime', ruleTimeKeys],
  ['ruleasset', ruleAssetKeys],
  ['ruleaccess', ruleAccessKeys],
] as const;

const plannedPlaces: SharedPlan<PlannedPlaces> = {
  begin: (planning) => new PlannedPlaces(planning),
};

const userinterface: FamilyProjection<StoredRule> = {
  stored: (reads, id) => reads.of(storedRules).rule(id),
  fold: foldRule,
  at: (reads, id, seq) => reads.of(storedRules).ruleAt(id, seq),
  plan(planning, { id, action, data }, { before, after }) {
    const { entries, texts } = planning;
    const reached = after === undefined ? [] : indexEntriesOf(after);
    planning
      .shared(plannedPlaces)
      .move(before === undefined ? [] : indexEntriesOf(before), reached);
    const isInsert = action === 'insert' && data.id === undefined;
    if (!isInsert || after === undefined) entries.state('rule', keyOf(id), after);
    else entries.put('rule', keyOf(id), () => texts.ofInserted('rule', { id, data, state: after }));
    for (const { database, key, value } of before === undefined ? [] : formerEntries(before)) {
      entries.remove(database, key, value);
    }
    for (const [database, keysOf] of ruleKeys) {
      for (const one of before === undefined ? [] : keysOf(before.rule)) {
        entries.remove(database, one);
      }
      for (const one of after === undefined ? [] : keysOf(after.rule)) {
        entries.put(database, one, '');
      }
    }
    for (const { database, key, value } of reached) {
      entries.put(database, key, value);
      entries.put(`ever${database}`, key, id);
    }
  },
};

/** The page rules. */
export const storedRules: ReadFamily<RuleReads> = {
  records: { userinterface },
  reads: createRuleReads,
  upgrade(databases: Databases, former: number) {
    if (former < markedVersion) putSeveralMarks(databases);
    if (former < namesVersion) putRuleAssets(databases);
  },
};

/** Counts the page rules that one decision adds to each place. */
class PlannedPlaces {
  readonly #planning: Planning;
  readonly #more = new Map<string, number>();

  constructor(planning: Planning) {
    this.#planning = planning;
  }

  /**
   * Moves a rule to other places. Throws `too_large` if one of them has no room; the node that
   * decided a copied transaction has found it.
   */
  move(from: readonly IndexEntry[], to: readonly IndexEntry[]): void {
    const left = new Set(from.map(nameOf));
    for (const place of to) {
      const reached = nameOf(place);
      if (left.delete(reached)) continue;
      const planned = this.#more.get(reached) ?? 0;
      const { reads, isCopy } = this.#planning;
      const failure = isCopy ? undefined : reads.of(storedRules).roomFailure(place, planned);
      if (failure !== undefined) throw failure;
      this.#more.set(reached, planned + 1);
    }
    for (const one of left) this.#more.set(one, (this.#more.get(one) ?? 0) - 1);
  }
}

function nameOf({ database, key }: IndexEntry): string {
  return `${database} ${key.toString('latin1')}`;
}
