import {
  canonicalJson,
  sameJson,
  type Json,
  type JsonObject,
} from '../../../../src/core/values/json/json.ts';
import { conflictsShownMax } from '../../../../src/core/operations/records/limits.ts';
import { invalidating, replay, type Entry, type Row, type State } from './ledger.ts';
import { difference, place } from './placing.ts';
import { asText } from './values.ts';
import { ownFields } from './views.ts';
import { compareTo, isWithin, refusal, type Answer, type World } from './world.ts';

/** The effect on one record. */
interface Revert {
  readonly id: string;
  readonly rows: readonly number[];
  readonly conflicts: readonly Row[];
  readonly path?: string;
  readonly becomes: 'gone' | 'restored' | 'changed' | 'same';
  readonly fields: JsonObject;
  /** The edit that places what is left. */
  readonly placed: JsonObject;
}

/** Why a selection is refused; undefined if it is not. */
export function selectionRefusal(world: World, v: JsonObject): Answer | undefined {
  const { id, txn, from, until } = v;
  if (['id', 'txn', 'by', 'from', 'until'].every((name) => v[name] === undefined)) {
    return refusal('invalid', 'id');
  }
  if (id !== undefined && !world.rows.some((row) => row.id === id)) {
    return refusal('not_found', 'id');
  }
  if (txn !== undefined && !world.rows.some((row) => row.txn === txn)) {
    return refusal('not_found', 'txn');
  }
  if (from !== undefined && !isWithin(world, from)) return refusal('invalid', 'from');
  if (until !== undefined && !isWithin(world, until)) return refusal('invalid', 'until');
  return undefined;
}

/** The answer to a dry run. */
export function reportOf(world: World, v: JsonObject, digest: string): JsonObject {
  const reverts = planOf(world, v);
  const count = (becomes: Revert['becomes']): number =>
    reverts.filter((one) => one.becomes === becomes).length;
  const conflicts = reverts.filter((one) => one.conflicts.length > 0);
  return {
    done: false,
    records: reverts.length,
    rows: reverts.flatMap(({ rows }) => rows).length,
    gone: count('gone'),
    restored: count('restored'),
    changed: count('changed'),
    ids: reverts.map(({ id }) => id),
    changes: reverts.map(({ conflicts: _conflicts, placed: _placed, ...one }) => ({
      family: 'userinterface',
      ...one,
    })),
    conflicts: conflicts.map(({ id, conflicts: rows }) => ({
      id,
      rows: rows.map(({ seq }) => seq),
      later: rows.slice(-conflictsShownMax).map(({ seq, by, dtu_stored: at, action, data }) => ({
        ...{ seq, by, at, action },
        fields: action === 'invalidate' ? [] : Object.keys(data).toSorted(),
      })),
    })),
    conflicting: conflicts.length,
    unlisted: 0,
    others: [],
    digest: knownDigest(world, reverts, digest),
  };
}

/** Checks the digest of a dry run: equal effects have equal digests, others have new ones. */
function knownDigest(world: World, reverts: readonly Revert[], digest: string): string {
  const plan = planText(world, reverts);
  const known = world.digests.get(plan);
  if (known !== undefined) return known;
  if ([...world.digests.values()].includes(digest)) return 'another digest than before';
  world.digests.set(plan, digest);
  return digest;
}

/** The content of a digest: the effect, and the seqs of the records. */
function planText({ rows }: World, reverts: readonly Revert[]): string {
  const newest = reverts.map(({ id }) => rows.findLast((row) => row.id === id)?.seq ?? 0);
  return canonicalJson([reverts, newest] as unknown as Json);
}

/** The rows and the answer of a confirmed invalidate; undefined if its digest is outdated. */
export function confirmInvalidate(
  world: World,
  { confirm, ...v }: JsonObject,
  { by, txn }: { readonly by: string; readonly txn: string },
): { readonly report: JsonObject; readonly entries: readonly Entry[] } | undefined {
  const reverts = planOf(world, v);
  if (world.digests.get(planText(world, reverts)) !== confirm) return undefined;
  const isPlaced = ({ placed }: Revert): boolean => Object.keys(placed).length > 0;
  const invalidates = reverts.map((one, at): Entry => {
    const data = { rows: one.rows, ...(isPlaced(one) && { placed: true }) };
    return { seq: world.newest + 1 + at, by, action: 'invalidate', id: one.id, data };
  });
  const edits = reverts.filter(isPlaced).map(({ id, placed }, at): Entry => {
    const seq = world.newest + 1 + invalidates.length + at;
    return { seq, by, action: 'edit', id, data: placed };
  });
  const report = {
    done: true,
    txn: invalidates.length === 0 ? null : txn,
    seq: invalidates.at(-1)?.seq ?? null,
    records: invalidates.length,
    rows: reverts.flatMap(({ rows }) => rows).length,
    ids: invalidates.map(({ id }) => id),
    unlisted: 0,
    others: [],
  };
  return { report, entries: [...invalidates, ...edits] };
}

function planOf(world: World, v: JsonObject): readonly Revert[] {
  const rows = selected(world, v);
  return [...new Set(rows.map(({ id }) => id))].map((id) => revertOf(world, id, rows));
}

/**
 * The rows to invalidate: selected rows in force, and rows that would return because the row that
 * invalidated them is reverted, too. A whole record (an id, with at most `until`) means its inserts
 * and edits: a deletion does not revert earlier invalidates.
 */
function selected(world: World, { id, txn, by, from, until }: JsonObject): readonly Row[] {
  const fits = world.rows.filter(
    (row) =>
      (id === undefined || row.id === id) &&
      (txn === undefined || row.txn === txn) &&
      (by === undefined || row.by === by) &&
      (from === undefined || compareTo(row, from) >= 0) &&
      (until === undefined || compareTo(row, until) <= 0),
  );
  const isWhole = id !== undefined && txn === undefined && by === undefined && isStart(from);
  const meant = isWhole ? fits.filter(({ action }) => action !== 'invalidate') : fits;
  let taken = meant.filter((row) => invalidating(world.rows, row) === undefined);
  for (;;) {
    const after = withInvalidates(world.rows, taken);
    const back = meant.filter((row) => invalidating(after, row) === undefined);
    if (back.length === 0) return taken;
    taken = meant.filter((row) => taken.includes(row) || back.includes(row));
  }
}

/** Whether a moment is before the first page rule; the first row of the log inserts a key. */
function isStart(from: Json | undefined): boolean {
  return from === undefined || (/^\d+$/.test(asText(from)) && Number(from) <= 1);
}

function withInvalidates(rows: readonly Row[], taken: readonly Row[]): readonly Entry[] {
  const seq = (rows.at(-1)?.seq ?? 0) + 1;
  const added = [...new Set(taken.map(({ id }) => id))].map((id): Entry => {
    const seqs = taken.filter((row) => row.id === id).map((row) => row.seq);
    return { seq, by: '', action: 'invalidate', id, data: { rows: seqs } };
  });
  return [...rows, ...added];
}

function revertOf({ rows }: World, id: string, taken: readonly Row[]): Revert {
  const own = taken.filter((row) => row.id === id);
  const seqs = own.map(({ seq }) => seq);
  const now = replay(rows, id);
  const after = withInvalidates(rows, own);
  const left = replay(after, id);
  const then = left && placedAgain(lastWritten(after, left));
  const path = (now ?? then)?.fields.get('path');
  return {
    id,
    rows: seqs,
    conflicts: rows
      .filter((row) => row.id === id && row.seq > (seqs[0] ?? 0) && !seqs.includes(row.seq))
      .filter((row) => !isPlacement(rows, row))
      .filter((row) => invalidating(rows, row) === undefined),
    ...(typeof path === 'string' && { path }),
    becomes: becoming(now, then),
    fields: now === undefined || then === undefined ? {} : changedFields(now, then),
    placed: left === undefined || then === undefined ? {} : difference(left, then),
  };
}

/** Whether a row is the placement that an invalidate has made. */
function isPlacement(rows: readonly Entry[], row: Entry): boolean {
  const before = rows.findLast((one) => one.id === row.id && one.seq < row.seq);
  if (row.action !== 'edit' || before?.data.placed !== true) return false;
  return (before as Partial<Row>).txn === (row as Partial<Row>).txn;
}

/** Each row in force replayed with what it left of its fields when it was written. */
function lastWritten(rows: readonly Entry[], left: State): State {
  const own = rows.filter(({ id }) => id === left.id);
  const counted = own
    .filter((row) => row.action !== 'invalidate' && !isPlacement(own, row))
    .filter((row) => invalidating(own, row) === undefined);
  const [fields, unknowns] = [new Map<string, Json>(), new Map<string, Json>()];
  for (const { seq, data } of counted) {
    const then = replay(
      own.filter((one) => one.seq <= seq),
      left.id,
    );
    const { _unknowns_: waiting = {}, ...named } = data;
    for (const [name, value] of Object.entries(named)) put(fields, name, value);
    for (const [name, value] of Object.entries(waiting as JsonObject)) put(unknowns, name, value);
    for (const name of [...Object.keys(named), ...Object.keys(waiting as JsonObject)]) {
      if (then?.unknowns.has(name) !== false) continue;
      unknowns.delete(name);
      if (!then.fields.has(name)) fields.delete(name);
    }
  }
  return { ...left, fields, unknowns };
}

function put(into: Map<string, Json>, name: string, value: Json): void {
  if (value === null) into.delete(name);
  else into.set(name, value);
}

function placedAgain(state: State): State {
  const placed = place(state, {}, {});
  return 'unusable' in placed ? state : { ...state, ...placed };
}

function becoming(now: State | undefined, then: State | undefined): Revert['becomes'] {
  if (then === undefined) return now === undefined ? 'same' : 'gone';
  if (now === undefined) return 'restored';
  return Object.keys(changedFields(now, then)).length === 0 ? 'same' : 'changed';
}

function changedFields(now: State, then: State): JsonObject {
  const [before, after] = [ownFields(now), ownFields(then)];
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return Object.fromEntries(
    [...names]
      .filter((name) => !sameJson(before[name], after[name]))
      .map((name) => [name, { now: told(before[name]), then: told(after[name]) }]),
  );
}

/** A value in a report: of a long one, the first 200 characters and the length. */
function told(value: Json = null): Json {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (text.length <= 200) return value;
  const isObject = typeof value === 'object' && !Array.isArray(value);
  const length = `${text.length} characters${isObject ? ' of JSON' : ''}`;
  return `${text.slice(0, 200).toWellFormed()}… (${length})`;
}
