import {
  boundsText,
  isInside,
  isRuleInside,
  type BoundedPlace,
  type Bounds,
  isOriginInside,
} from '../../../core/values/bounds.ts';
import { mergeFields, type Change } from '../../../core/log/change.ts';
import { Failure } from '../../../core/values/failure.ts';
import { isJsonObject, type JsonObject } from '../../../core/values/json/json.ts';
import type { Caller } from '../../../core/values/key.ts';
import { type Rule, type StoredRule, foldRule } from '../rule.ts';
import { foldRows } from '../../../core/log/write/fold.ts';
import type { Reads } from '../../../core/log/store.ts';
import type { PastRules } from '../log/reads.ts';
import type {
  FamilyCall,
  OrderedSteps,
  RecordFamily,
  RecordParts,
  RecordStep,
  StoredRecord,
} from '../../../core/operations/records/family.ts';
import type { PartSelection, RecordRevert } from '../../../core/operations/records/revert.ts';
import { wideSetting } from './wide-settings.ts';
import { storedRules } from '../log/family.ts';

type RuleReads = Pick<Reads, 'rows' | 'of'>;

/**
 * Throws `forbidden` for a place outside of the bounds of a key. It depends on the input alone, so
 * it tells nothing about the site.
 */
export function requireInside(
  { bounds }: Pick<Caller, 'bounds'>,
  place: BoundedPlace,
  field: 'path' | 'k' | 'url' = 'path',
): void {
  if (bounds === undefined || isInside(bounds, place)) return;
  throw outsideFailure(bounds, place, field);
}

function outsideFailure(
  bounds: Bounds,
  { origin, path }: BoundedPlace,
  field: 'path' | 'k' | 'url',
): Failure {
  const namesOrigin = !isOriginInside(bounds, origin) && field === 'path';
  const [own = ''] = bounds.origins ?? [];
  // Who leaves `origin` out means every one, often without knowing.
  const advice = namesOrigin ? `Name an origin inside, "origin": "${own}"` : 'Name a place inside';
  const shown = `${origin} ${path}`.slice(0, shownPlaceCharactersMax);
  return new Failure(
    'forbidden',
    `This key is bound to ${boundsText(bounds)}, and ${shown} is outside. ${advice}, or use ` +
      'another key.',
    { field: namesOrigin ? 'origin' : field },
  );
}

const shownPlaceCharactersMax = 200;

/** Page rules that show one asset, of which a bound key looks for one inside. */
const assetUsesExaminedMax = 10_000;

/**
 * The asset that a page rule shows as its only one inside of bounds; undefined if another rule
 * inside shows it already, or if it shows the one of `before`. Assets belong to the whole site, so
 * a bound key shows only those that someone else has brought inside. It is the same for an asset
 * that there is not, so it tells nothing of the others.
 */
export function outerAsset(
  reads: Pick<Reads, 'of'>,
  { asset, before }: { readonly asset: string | undefined; readonly before: string | undefined },
  bounds: Bounds,
): string | undefined {
  if (asset === undefined || asset === before) return undefined;
  for (const id of reads.of(storedRules).rulesOfAsset(asset, assetUsesExaminedMax)) {
    const rule = reads.of(storedRules).rule(id)?.rule;
    if (rule !== undefined && isRuleInside(bounds, rule)) return undefined;
  }
  const shown = JSON.stringify(asset.slice(0, shownPlaceCharactersMax));
  return `no page rule inside shows the asset ${shown} yet: ask for one with another key`;
}

/**
 * Whether a bound key sees a page rule: one that is inside, or was when it was removed. A rule that
 * is elsewhere by now is not there for the key, nor is its past.
 */
export function isRuleSeen(reads: RuleReads, id: string, bounds: Bounds | undefined): boolean {
  if (bounds === undefined) return true;
  const now = reads.of(storedRules).rule(id)?.rule ?? lastPlace(reads.rows('userinterface', id));
  return now !== undefined && isRuleInside(bounds, now);
}

function lastPlace(rows: readonly Change[]): Rule | undefined {
  return [...placesAfter(rows).values()].findLast((place) => place !== undefined);
}

/** Whether a row of the log left its page rule inside of bounds, or removed it from there. */
export function shownRows(reads: RuleReads, id: string, bounds: Bounds): (seq: number) => boolean {
  return rowsInside(reads.rows('userinterface', id), bounds);
}

function rowsInside(rows: readonly Change[], bounds: Bounds): (seq: number) => boolean {
  const shown = new Map<number, boolean>();
  let isLastInside = false;
  for (const [seq, place] of placesAfter(rows)) {
    if (place !== undefined) isLastInside = isRuleInside(bounds, place);
    shown.set(seq, isLastInside);
  }
  return (seq) => shown.get(seq) === true;
}

/** Where a page rule was after each of its rows, oldest first; undefined while it did not exist. */
function placesAfter(rows: readonly Change[]): ReadonlyMap<number, Rule | undefined> {
  const places = new Map<number, Rule | undefined>();
  const placing = rows.map((row) => {
    return row.action === 'invalidate' ? row : { ...row, data: placeData(row.data) };
  });
  let stored: StoredRule | undefined;
  for (const [at, row] of placing.entries()) {
    if (row.action === 'invalidate') stored = foldRows(placing.slice(0, at + 1), foldRule).stored;
    else if (row.action === 'insert' || stored !== undefined) stored = foldRule(stored, row);
    places.set(row.seq, stored?.rule);
  }
  return places;
}

/** The fields of a row that decide where its rule is. */
function placeData({ origin, path, kind, _unknowns_: unknowns }: JsonObject): JsonObject {
  const waiting = isJsonObject(unknowns)
    ? { _unknowns_: unknowns.origin === undefined ? {} : { origin: unknowns.origin } }
    : unknowns !== undefined && { _unknowns_: unknowns };
  return {
    ...(origin !== undefined && { origin }),
    ...(path !== undefined && { path }),
    ...(kind !== undefined && { kind }),
    ...waiting,
  };
}

/** The page rules inside of bounds, as a resolver reads them. */
export function rulesInside(
  rules: Pick<PastRules, 'rule' | 'exactRules' | 'wildcardRules' | 'rowByKey'>,
  bounds: Bounds,
): Pick<PastRules, 'rule' | 'exactRules' | 'wildcardRules' | 'rowByKey'> {
  return {
    // The assets that these rules refer to belong to the whole site.
    rowByKey: (table, value) => rules.rowByKey(table, value),
    rule(id) {
      const stored = rules.rule(id);
      return stored !== undefined && isRuleInside(bounds, stored.rule) ? stored : undefined;
    },
    exactRules: (origin, path) =>
      isInside(bounds, { origin, path }) ? rules.exactRules(origin, path) : [],
    *wildcardRules(origin, path) {
      for (const group of rules.wildcardRules(origin, path)) {
        const inside = group.filter((one) => isInside(bounds, { origin, path: one.path }));
        if (inside.length > 0) yield inside;
      }
    },
  };
}

/** Whether the source of a reply or failure, `rule:<id>`, is one of some rules. */
export function isSourceInside(
  rules: Pick<PastRules, 'rule'>,
): (source: string | undefined) => boolean {
  return (source = '') => rules.rule(/^rule:(.+)$/.exec(source)?.[1] ?? '') !== undefined;
}

/** The family of page rules as a bound key sees it: only rules inside exist, and none leaves. */
export function boundedRules<Parts extends RecordParts>(
  family: RecordFamily<Parts, Rule>,
  { operation }: Pick<FamilyCall, 'operation'>,
  bounds: Bounds,
): RecordFamily<Parts, Rule> {
  const inside = (stored: StoredRecord<Rule> | undefined): StoredRecord<Rule> | undefined =>
    stored !== undefined && isRuleInside(bounds, stored.record) ? stored : undefined;
  function* steps(walked: Iterable<RecordStep<Rule>> = []): Iterable<RecordStep<Rule>> {
    for (const step of walked) yield { ...step, stored: inside(step.stored) };
  }
  const place: typeof family.place = (write, parts) => {
    const data = family.place(write, parts);
    const current = write.current as unknown as JsonObject | undefined;
    const rule = mergeFields(current ?? {}, data) as unknown as Rule;
    if (!isRuleInside(bounds, rule)) throw outsideFailure(bounds, rule, 'path');
    const outer = outerAsset(
      parts.store,
      { asset: rule.asset, before: write.current?.asset },
      bounds,
    );
    const wide =
      outer === undefined ? wideSetting(data, rule, bounds) : { says: outer, field: 'asset' };
    if (wide === undefined) return data;
    const { says, field } = wide;
    throw new Failure('forbidden', `This key is bound to ${boundsText(bounds)}, and ${says}.`, {
      field,
    });
  };
  const orders = Object.entries(family.list.orders ?? {}).map(
    ([name, order]): [string, OrderedSteps<Rule>] => [name, (...given) => steps(order(...given))],
  );
  return {
    ...family,
    find: (reads, id) => inside(family.find(reads, id)),
    findAt: (reads, id, seq) => inside(family.findAt(reads, id, seq)),
    after: (reads, id) => steps(family.after(reads, id)),
    afterAt: (reads, id, seq) => steps(family.afterAt?.(reads, id, seq)),
    hadRecord: (reads, id) => isRuleSeen(reads, id, bounds),
    shownRows: (reads, id) => shownRows(reads, id, bounds),
    within: { bounds: bounds as JsonObject },
    place,
    beforeWrite(sent, parts) {
      // Before the vk: whether that is known must not tell of a rule outside.
      if (operation === 'insert') {
        place({ current: undefined, sent }, parts);
      }
      return { isDiscarded: false };
    },
    // The cursor of a rule that the caller does not see would show its id or its path.
    list: { ...family.list, endsAtShown: true, orders: Object.fromEntries(orders) },
  };
}

/** The bounds of a selection of rows; undefined if its caller has none. */
function boundsWithin(within: JsonObject | undefined): Bounds | undefined {
  return within?.bounds as Bounds | undefined;
}

/** RecordFamily.isWithin of page rules. */
export function isRuleWithin(reads: RuleReads, id: string, within: JsonObject): boolean {
  return isRuleSeen(reads, id, boundsWithin(within));
}

/**
 * The effect of an undo as a bound key sees it. Throws `not_found` for a transaction that has
 * changed nothing inside, and `forbidden` for one that has also changed something outside, for a
 * change that was made outside, moved a rule in or out, or would do so.
 */
export function boundRevert(
  reads: Reads,
  { txn, id, within }: PartSelection,
  records: readonly RecordRevert[],
): readonly RecordRevert[] {
  const bounds = boundsWithin(within);
  if (bounds === undefined) return records;
  if (txn !== undefined) requireTxnInside(reads, { txn, id }, bounds);
  return records.map((record) => {
    const rows = reads.rows('userinterface', record.id);
    if (record.then !== undefined) requireRevertInside(record, rows, bounds);
    const isShown = rowsInside(rows, bounds);
    return { ...record, conflicts: record.conflicts.filter(({ seq }) => isShown(seq)) };
  });
}

function requireTxnInside(
  reads: Reads,
  { txn, id }: { readonly txn: string; readonly id: string | undefined },
  bounds: Bounds,
): void {
  const { first, last } = reads.txnSeqs(txn) ?? { first: 1, last: 0 };
  const seen = new Map<string, boolean>();
  for (let seq = first; seq <= last; seq += 1) {
    const row = reads.change(seq);
    if (row?.family !== 'userinterface' || (id !== undefined && row.id !== id)) continue;
    if (!seen.has(row.id)) seen.set(row.id, isRuleSeen(reads, row.id, bounds));
  }
  const all = [...seen.values()];
  if (!all.includes(true)) {
    throw new Failure('not_found', 'There is no transaction with this id.', { field: 'txn' });
  }
  if (!all.includes(false)) return;
  const message = `The transaction has also changed what is outside of ${boundsText(bounds)}.`;
  throw new Failure('forbidden', `${message} Use a key without bounds.`, { field: 'txn' });
}

function requireRevertInside(
  { id, rows: reverted, then }: RecordRevert,
  rows: readonly Change[],
  bounds: Bounds,
): void {
  const isAllowed = (place: Rule | undefined): boolean =>
    place === undefined || isRuleInside(bounds, place);
  const places = [...placesAfter(rows)];
  const isInsideThroughout = places.every(([seq, place], at) => {
    return !reverted.includes(seq) || (isAllowed(places[at - 1]?.[1]) && isAllowed(place));
  });
  if (isInsideThroughout && isAllowed(then as Rule | undefined)) return;
  throw new Failure(
    'forbidden',
    `The page rule ${id} was, or would be, outside of ${boundsText(bounds)}. Leave it out with ` +
      'except, or use a key without bounds.',
    { field: 'id' },
  );
}
