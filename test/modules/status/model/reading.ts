import type { Json, JsonObject } from '../../../../src/core/values/json/json.ts';
import { invalidating, replay, replayAll, type Row, type State } from './ledger.ts';
import { asText, kinds } from './values.ts';
import { listed, ownFields, rendered, shown } from './views.ts';
import { winnerOf } from './winner.ts';
import { isWithin, refusal, rowsAt, type Answer, type Request, type World } from './world.ts';

/** The answer of read: a record, now or in the past, or its rows. */
export function answerRead(world: World, { v, qk }: Request): Answer {
  const { id, as_of: asOf } = present(v);
  if (qk === 'history') return history(world, present(v));
  if (qk !== undefined) return refusal('invalid', 'qk');
  if (asOf !== undefined && !isWithin(world, asOf)) return refusal('invalid', 'as_of');
  const state = replay(rowsAt(world, asOf), asText(id));
  return state === undefined ? refusal('not_found', 'id') : { data: shown(world, state) };
}

/** Null means that a field is absent. */
function present(v: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(v).filter(([, value]) => value !== null));
}

function history({ rows }: World, v: JsonObject): Answer {
  if (v.as_of !== undefined) return refusal('invalid', 'as_of');
  const own = rows.filter(({ id }) => id === v.id);
  if (own.length === 0) return refusal('not_found', 'id');
  const page = own
    .filter(({ seq }) => v.before === undefined || seq < Number(v.before))
    .toReversed()
    .slice(0, Number(v.limit ?? 100));
  const last = page.at(-1);
  return {
    data: {
      rows: page.map((row) => historyRow(rows, row)),
      next: last === undefined || last === own[0] ? null : last.seq,
    },
  };
}

function historyRow(rows: readonly Row[], row: Row): JsonObject {
  const { seq, txn, by, action, dtu_stored, dtu_txn, id } = row;
  const told = { seq, txn, by, action, dtu_stored, dtu_txn };
  const data = { id, ...row.data };
  const out = invalidating(rows, row);
  return out === undefined
    ? { ...told, data }
    : { ...told, invalidated: out.dtu_stored, data_invalidated: data };
}

/** The answer of list: a page of the records that match all filters. */
export function answerList(world: World, { v }: Request): Answer {
  const { as_of: asOf, after = '', limit = 100, ...filters } = present(v);
  const { kind, origin } = filters;
  // The schema of the input names the kinds, and is checked before anything is read.
  if (kind !== undefined && !kinds.some((one) => one === kind)) return refusal('invalid', 'kind');
  if (asOf !== undefined && !isWithin(world, asOf)) return refusal('invalid', 'as_of');
  if (origin !== undefined && !origins.has(asText(origin))) return refusal('invalid', 'origin');
  const found = replayAll(rowsAt(world, asOf))
    .filter((state) => passes(state, filters))
    .filter(({ id }) => id > asText(after));
  const page = found.slice(0, Number(limit));
  return {
    data: {
      rows: page.map((state) => listed(world, state)),
      next: page.length === Number(limit) ? (page.at(-1)?.id ?? null) : null,
    },
  };
}

/** The stored forms of origins in filters. */
export const origins: ReadonlyMap<string, string> = new Map([
  ['*', '*'],
  ['http://shop.example', 'http://shop.example'],
  ['HTTP://Shop.Example:80', 'http://shop.example'],
  ['https://b.example', 'https://b.example'],
]);

/** The stored forms of paths in filters. */
export const paths: ReadonlyMap<string, string> = new Map([
  ['/', '/'],
  ['/a', '/a'],
  ['/ab', '/ab'],
  ['/a/b', '/a/b'],
  ['/a/b/c', '/a/b/c'],
  ['/p%20q', '/p q'],
  ['/p%2520q', '/p%20q'],
  ['/none', '/none'],
]);

function passes(state: State, filters: JsonObject): boolean {
  const { path = '', origin, text = '', ...equal } = filters;
  const isSame = Object.entries(equal).every(([name, value]) => state.fields.get(name) === value);
  const prefix = paths.get(asText(path)) ?? asText(path);
  return (
    isSame &&
    (origin === undefined || state.fields.get('origin') === origins.get(asText(origin))) &&
    asText(state.fields.get('path')).startsWith(prefix) &&
    Object.values(ownFields(state)).some((value) => contains(value, asText(text)))
  );
}

/** Whether a value contains a text, in upper or lower case; other values count as JSON. */
function contains(value: Json, text: string): boolean {
  return asText(value).toLowerCase().includes(text.toLowerCase());
}

/** The answer of get: the public fields of the winning rule. */
export function answerGet(world: World, { v, languages }: Request): Answer {
  const { as_of: asOf, ...place } = present(v);
  if (asOf !== undefined && !isWithin(world, asOf)) return refusal('invalid', 'as_of');
  const path = paths.get(asText(place.path)) ?? '';
  const origin = origins.get(asText(place.origin)) ?? '';
  const rules = replayAll(rowsAt(world, asOf));
  const winner = winnerOf(rules, { origin, path, languages });
  return winner === undefined ? refusal('not_found') : { data: rendered(world, winner, path) };
}
