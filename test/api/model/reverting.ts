import { canonicalJson, sameJson, type Json, type JsonObject } from '../../../src/model/json.ts';
import { invalidating, replay, type Entry, type Row, type State } from './ledger.ts';
import { asText } from './values.ts';
import { ownFields } from './views.ts';
import { compareTo, isWithin, refusal, type Answer, type World } from './world.ts';

/** What is to become of one record. */
interface Revert {
  readonly id: string;
  readonly rows: readonly number[];
  readonly conflicts: readonly number[];
  readonly becomes: 'gone' | 'restored' | 'changed' | 'same';
  readonly fields: JsonObject;
}

/** Why nothing can be selected; undefined where it can. */
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
    changes: reverts.map(({ id, rows, becomes, fields }) => ({ id, rows, becomes, fields })),
    conflicts: conflicts.map(({ id, conflicts: rows }) => ({ id, rows })),
    conflicting: conflicts.length,
    unlisted: 0,
    digest: knownDigest(world, reverts, digest),
  };
}

/** The digest of the same plan as before, or one that is new with a plan that is new. */
function knownDigest(world: World, reverts: readonly Revert[], digest: string): string {
  const plan = planText(world, reverts);
  const known = world.digests.get(plan);
  if (known !== undefined) return known;
  if ([...world.digests.values()].includes(digest)) return 'another digest than before';
  world.digests.set(plan, digest);
  return digest;
}

/** What a digest is of: what would be done, to records at which seq. */
function planText({ rows }: World, reverts: readonly Revert[]): string {
  const newest = reverts.map(({ id }) => rows.findLast((row) => row.id === id)?.seq ?? 0);
  return canonicalJson([reverts, newest] as unknown as Json);
}

/** What a confirmed invalidate writes and answers; undefined where the digest is not of now. */
export function confirmInvalidate(
  world: World,
  { confirm, ...v }: JsonObject,
  { by, txn }: { readonly by: string; readonly txn: string },
): { readonly report: JsonObject; readonly entries: readonly Entry[] } | undefined {
  const reverts = planOf(world, v);
  if (world.digests.get(planText(world, reverts)) !== confirm) return undefined;
  const entries = reverts.map(({ id, rows }, at): Entry => {
    const seq = world.newest + 1 + at;
    return { seq, by, action: 'invalidate', id, data: { rows } };
  });
  const report = {
    done: true,
    txn: entries.length === 0 ? null : txn,
    seq: entries.at(-1)?.seq ?? null,
    records: entries.length,
    rows: reverts.flatMap(({ rows }) => rows).length,
    ids: entries.map(({ id }) => id),
    unlisted: 0,
  };
  return { report, entries };
}

function planOf(world: World, v: JsonObject): readonly Revert[] {
  const rows = selected(world, v);
  return [...new Set(rows.map(({ id }) => id))].map((id) => revertOf(world, id, rows));
}

/**
 * The rows that are to be out of force: those that are in force, and those that would come back
 * because the row that took them out goes as well. The whole record (an id, and nothing else but
 * how far) means its inserts and edits: to end it is not to take back what was taken out of it.
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

/** Whether a window that begins at a moment begins with the log, whose first row is of a key. */
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
  const then = replay(withInvalidates(rows, own), id);
  return {
    id,
    rows: seqs,
    conflicts: rows
      .filter((row) => row.id === id && row.seq > (seqs[0] ?? 0) && !seqs.includes(row.seq))
      .filter((row) => invalidating(rows, row) === undefined)
      .map(({ seq }) => seq),
    becomes: becoming(now, then),
    fields: now === undefined || then === undefined ? {} : changedFields(now, then),
  };
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

/** A value as a report tells it: a long one by its first 200 characters and its length. */
function told(value: Json = null): Json {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (text.length <= 200) return value;
  const isObject = typeof value === 'object' && !Array.isArray(value);
  const length = `${text.length} characters${isObject ? ' of JSON' : ''}`;
  return `${text.slice(0, 200).toWellFormed()}… (${length})`;
}
