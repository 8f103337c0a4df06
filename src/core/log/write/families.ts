import { type SiteDraft, draftStateKey } from '../../../modules/drafts/draft.ts';
import { ruleAccessKeys } from '../../../modules/rules/log/rule-access.ts';
import { formerEntries, indexEntriesOf } from '../../../modules/rules/log/rule-index.ts';
import { ruleAssetKeys, ruleTimeKeys } from '../../../modules/rules/log/rule-lookups.ts';
import type { StoredRule } from '../../../modules/rules/rule.ts';
import type { PlannedRows } from '../../../modules/tables/log/planned-rows.ts';
import type { StoredRow } from '../../../modules/tables/row.ts';
import type { StoredTable } from '../../../modules/tables/table.ts';
import { type HookSecret, type StoredHook, hookOfSecret } from '../../../modules/webhooks/hook.ts';
import type { ApiKey } from '../../values/key.ts';
import type { Change, Family } from '../change.ts';
import { keyOf } from '../encoding.ts';
import type { Reads } from '../store.ts';
import { foldDraft, foldHook, foldKey, foldRow, foldRule, foldSecret, foldTable } from './fold.ts';
import type { DataTexts, PlannedEntries, PlannedPlaces, Transition } from './planned-entries.ts';

/** The state that the changes of one decision share while the store plans them. */
export interface Planning {
  readonly entries: PlannedEntries;
  readonly places: PlannedPlaces;
  readonly rows: PlannedRows;
  readonly texts: DataTexts;
}

/** How the store keeps the records of a family: their state, and what it derives from that. */
export interface FamilyProjection<S> {
  /** The current state of the record that a change concerns. */
  stored(reads: Reads, id: string): S | undefined;
  /** Applies a change; of a family that can be reverted, only an insert or edit. */
  fold(before: S | undefined, change: Change): S | undefined;
  /** Plans the entries of a change. Throws a Failure if the change cannot be made. */
  plan(planning: Planning, change: Change, transition: Transition<S>): void;
}

/** The databases that have keys of page rules and no values. */
const ruleKeys = [
  ['ruletime', ruleTimeKeys],
  ['ruleasset', ruleAssetKeys],
  ['ruleaccess', ruleAccessKeys],
] as const;

const userinterface: FamilyProjection<StoredRule> = {
  stored: (reads, id) => reads.rule(id),
  fold: foldRule,
  plan({ entries, places, texts }, { id, action, data }, { before, after }) {
    const reached = after === undefined ? [] : indexEntriesOf(after);
    places.move(before === undefined ? [] : indexEntriesOf(before), reached);
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

const webhook: FamilyProjection<StoredHook> = {
  stored: (reads, id) => reads.hook(id),
  fold: foldHook,
  plan({ entries }, change, { before, after }) {
    const { id } = change;
    for (const type of before?.hook.event ?? []) entries.remove('hooktype', keyOf(type), id);
    for (const type of after?.hook.event ?? []) entries.put('hooktype', keyOf(type), id);
    entries.state('hook', keyOf(id), after);
    entries.stampHooks(change);
  },
};

const secret: FamilyProjection<HookSecret> = {
  stored: (reads, id) => reads.hookSecret(hookOfSecret(id)),
  fold: foldSecret,
  plan({ entries }, change, { after }) {
    entries.state('hooksecret', keyOf(hookOfSecret(change.id)), after);
    entries.stampHooks(change);
  },
};

const key: FamilyProjection<ApiKey> = {
  stored: (reads, id) => reads.key(id),
  fold: foldKey,
  plan({ entries }, { id }, { before, after }) {
    if (before !== undefined) entries.remove('keyhash', keyOf(before.hash));
    if (after !== undefined) entries.put('keyhash', keyOf(after.hash), id);
    entries.state('key', keyOf(id), after);
    if (after === undefined) entries.revokedKey(id);
  },
};

const table: FamilyProjection<StoredTable> = {
  stored: (reads, id) => reads.tableById(id),
  fold: foldTable,
  plan({ rows }, change, transition) {
    rows.changeTable(change, transition);
  },
};

const record: FamilyProjection<StoredRow> = {
  stored: (reads, id) => reads.row(id),
  fold: foldRow,
  plan({ rows }, change, transition) {
    rows.changeRow(change, transition);
  },
};

const draft: FamilyProjection<SiteDraft> = {
  stored: (reads, id) => reads.draft(id),
  fold: foldDraft,
  plan({ entries }, { id }, { before, after }) {
    const [former, name] = [before?.name, after?.name];
    if (former !== undefined && former !== name) entries.remove('draftname', keyOf(former));
    // The name leads to an ended draft until another one gets it.
    if (name !== undefined && former !== name) entries.put('draftname', keyOf(name), id);
    if (before !== undefined && before.state !== after?.state) {
      entries.remove('draftstate', draftStateKey(before));
    }
    if (after !== undefined && before?.state !== after.state) {
      entries.put('draftstate', draftStateKey(after), '');
    }
    entries.state('draft', keyOf(id), after);
  },
};

/** The families by name. A projection gets the states that it has returned itself. */
const families: Readonly<Partial<Record<Family, FamilyProjection<object>>>> = {
  userinterface,
  webhook,
  secret,
  key,
  table,
  record,
  draft,
};

/** How the store keeps the records of a family; undefined if only the log has them. */
export function familyProjection(family: Family): FamilyProjection<object> | undefined {
  return families[family];
}
