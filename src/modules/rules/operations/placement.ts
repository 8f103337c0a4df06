import { waitingMembersMax } from '../../../core/operations/limits.ts';
import {
  type FieldValues,
  type FieldWrite,
  type Named,
  type PlacedField,
  placeRecord,
  requireSize,
} from '../../../core/operations/records/placement.ts';
import { Failure } from '../../../core/values/failure.ts';
import { type Json, type JsonObject, isJsonObject } from '../../../core/values/json/json.ts';
import { segmentsMax } from '../../../core/values/path.ts';
import { type Rule, ruleKinds } from '../rule.ts';
import { ruleHeaderRefusal } from '../pages/rule-headers.ts';
import { type EnginedataPlacing, enginedataProblems } from './enginedata.ts';
import { type Placing, fieldDefinitions, isRuleKind } from './fields.ts';
import { ruleBytesMax } from './limits.ts';

/** Rounds after which all of a value waits. */
const roundsMax = 8;

/**
 * Places the fields of a page rule (docs/design/page-rules.md#invalid-values); returns the data of
 * the change. Kind and engine decide which values are valid. Throws `invalid` for a rule without a
 * usable path or kind, `too_large` past a limit.
 */
export function placeRuleFields(
  write: FieldWrite<Rule>,
  checks: Pick<Placing, 'engines' | 'accessNames'>,
): JsonObject {
  return placeRecord(write, (before, pending) => {
    const placing = placingOf(before, pending, checks);
    return {
      names: fieldDefinitions,
      placeField(name, values) {
        if (name === 'enginedata') return placeEnginedata(values, placing);
        return name === 'headers'
          ? placeHeaders(values, placing)
          : placeField(name, values, placing);
      },
      complete(fields, unknowns) {
        if (!fields.has('origin')) fields.set('origin', '*');
        if (placing.engine !== undefined) fields.set('engine', placing.engine);
        requirePath(fields, unknowns);
        const rest = new Map([...fields].filter(([name]) => name !== 'content'));
        requireSize('The rule without its content', { fields: rest, unknowns }, ruleBytesMax);
      },
    };
  });
}

function placingOf(
  fields: Named,
  pending: Named,
  checks: Pick<Placing, 'engines' | 'accessNames'>,
): Placing {
  const { engines } = checks;
  const wanted = pending.get('kind');
  const inferred =
    (pending.get('content') ?? pending.get('asset') ?? null) === null ? undefined : 'content';
  const kinds = [wanted, wanted === null ? undefined : fields.get('kind'), inferred];
  const kind =
    (wanted ?? null) === null ? (kinds.find(isRuleKind) ?? 'content') : kinds.find(isRuleKind);
  if (kind === undefined) {
    const shown = JSON.stringify(wanted).slice(0, shownCharactersMax);
    throw new Failure('invalid', `kind ${shown} is not one of ${ruleKinds.join(', ')}.`, {
      field: 'kind',
    });
  }
  // The engine that the rule gets decides, not one that waits in `_unknowns_`.
  const { field: engine, unknown } = placeField(
    'engine',
    { old: fields.get('engine'), sent: pending.get('engine'), waiting: undefined },
    { ...checks, kind, engine: undefined },
  );
  if (typeof engine === 'string') return { ...checks, kind, engine };
  const isForm = kind.endsWith('-record') && unknown === undefined && engines.has('form');
  return { ...checks, kind, engine: isForm ? 'form' : undefined };
}

/**
 * Places enginedata member by member: valid members become a field, others wait. Without a sent
 * value, the valid and the waiting members before the write are placed again.
 */
function placeEnginedata({ old, sent, waiting }: FieldValues, placing: Placing): PlacedField {
  if (sent === null) return {};
  const before = isJsonObject(old) ? old : undefined;
  const next = sent === undefined ? undefined : validValue('enginedata', sent, placing);
  const merged = isJsonObject(waiting) ? mergeEnginedata(before ?? {}, waiting) : before;
  const whole = isJsonObject(next) ? next : merged;
  const unplaced = sent ?? waiting;
  const kept = isJsonObject(unplaced) ? undefined : unplaced;
  if (whole === undefined) return kept === undefined ? {} : { unknown: kept };
  const { valid, waiting: unknown = kept } = splitEnginedata(whole, before, placing);
  if (unknown === undefined) return { field: valid };
  return Object.keys(valid).length === 0 ? { unknown } : { field: valid, unknown };
}

/**
 * Places `headers` field by field: one that is not valid waits, and its value before the write
 * stays. Without a sent value, the fields before the write are placed again.
 */
function placeHeaders(values: FieldValues, placing: Placing): PlacedField {
  const { old, sent, waiting } = values;
  const before = isJsonObject(old) ? old : {};
  const whole = sent ?? (isJsonObject(waiting) ? { ...before, ...waiting } : undefined);
  if (sent === null || !isJsonObject(whole)) return placeField('headers', values, placing);
  const wrong = Object.entries(whole).filter(
    ([name, value]) => ruleHeaderRefusal(name, value) !== undefined,
  );
  if (wrong.length === 0) return placeField('headers', { ...values, sent: whole }, placing);
  const names = new Set(wrong.map(([name]) => name));
  const others = Object.entries(whole).filter(([name]) => !names.has(name));
  const kept = Object.entries(before).filter(([name]) => names.has(name));
  const field = validValue('headers', Object.fromEntries([...others, ...kept]), placing);
  const unknown = field === undefined ? whole : Object.fromEntries(wrong);
  return { ...(field !== undefined && { field }), unknown };
}

function placeField(
  name: string,
  { old, sent, waiting }: FieldValues,
  placing: Placing,
): PlacedField {
  const next = sent === undefined ? waiting : sent;
  if (name === 'kind') {
    const isUsed = next === undefined || next === null || isRuleKind(next);
    return isUsed ? { field: placing.kind } : { field: placing.kind, unknown: next };
  }
  if (next === null) return {};
  const nextField = next === undefined ? undefined : validValue(name, next, placing);
  if (nextField !== undefined) return { field: nextField };
  if (old !== undefined && isStillValid(name, old, placing)) {
    return next === undefined ? { field: old } : { field: old, unknown: next };
  }
  const unknown = next ?? old;
  return unknown === undefined ? {} : { unknown };
}

function validValue(name: string, value: Json, placing: Placing): Json | undefined {
  const definition = fieldDefinitions.get(name);
  if (definition?.kinds.includes(placing.kind) !== true) return undefined;
  return definition.parse(value, placing);
}

/**
 * Whether a value of the record is valid for the new kind. It is not parsed again, because a stored
 * path is decoded and a sent one is not.
 */
function isStillValid(name: string, value: Json, placing: Placing): boolean {
  const definition = fieldDefinitions.get(name);
  if (definition?.kinds.includes(placing.kind) !== true) return false;
  return definition.stillValid?.(value, placing) ?? true;
}

function requirePath(fields: Named, unknowns: Named): void {
  if (fields.has('path')) return;
  throw new Failure('invalid', pathMistake(unknowns.get('path')), { field: 'path' });
}

function pathMistake(path: Json | undefined): string {
  if (path === undefined) {
    return 'path is missing: the URL path that the rule answers, such as /news or /news/*.';
  }
  if (typeof path === 'string' && path.includes('?')) {
    const [before = '', query = ''] = path.split('?');
    const [name = '', value = ''] = query.split('&', 1)[0]?.split('=') ?? [];
    return (
      `path ends before the query: write ${before.slice(0, shownCharactersMax)}, and give a ` +
      'branch of enginedata.when the condition ' +
      `${JSON.stringify({ query: { [name]: value } }).slice(0, shownCharactersMax)}.`
    );
  }
  return (
    'path cannot be used: it starts with /, has no . or .. segments, no control characters, ' +
    'no backslash, no encoded slash but with content.fetch, and at most one *: at its end, or in ' +
    `place of one whole segment of at most ${segmentsMax}.`
  );
}

const shownCharactersMax = 80;

/**
 * Splits an enginedata into members that are valid for its kind and engine, and others, which wait
 * one by one (docs/design/page-rules.md#invalid-values). In place of a waiting member, its value
 * before the write stays if it is still valid.
 */
function splitEnginedata(
  value: JsonObject,
  before: JsonObject | undefined,
  placing: EnginedataPlacing,
): { readonly valid: JsonObject; readonly waiting: JsonObject | undefined } {
  let valid = value;
  let waiting: JsonObject | undefined;
  // Without one member, another one may become invalid.
  for (let round = 0; round < roundsMax; round += 1) {
    const paths = waitingPaths(valid, placing);
    if (paths.length === 0) return { valid, waiting };
    // Some members of the same object may wait already.
    waiting = mergeEnginedata(waiting ?? {}, withMembers({}, membersAt(valid, paths)));
    valid = withoutMembers(valid, paths);
    if (before === undefined) continue;
    const old = membersAt(before, paths);
    const wrong = waitingPaths(withMembers(valid, old), placing);
    const usable = old.filter(([path]) => !wrong.some((one) => isSamePath(one, path)));
    valid = withMembers(valid, usable);
  }
  return { valid: before ?? {}, waiting: value };
}

/** An enginedata with its waiting members in their places; they replace valid ones. */
export function mergeEnginedata(valid: JsonObject, waiting: JsonObject): JsonObject {
  const merged = new Map(Object.entries(valid));
  for (const [name, value] of Object.entries(waiting)) {
    const inner = merged.get(name);
    merged.set(
      name,
      isJsonObject(inner) && isJsonObject(value) ? mergeEnginedata(inner, value) : value,
    );
  }
  return Object.fromEntries(merged);
}

/** The paths to values that are not valid, none of them inside another one. */
function waitingPaths(
  value: JsonObject,
  placing: EnginedataPlacing,
): readonly (readonly string[])[] {
  const all = enginedataProblems(value, placing).flatMap(({ waits }) =>
    waits === undefined ? [] : [waits],
  );
  const whole = new Set(all.filter(({ length }) => length === 1).map(([name]) => name));
  // If very many are not valid, their outer members wait.
  if (all.length > waitingMembersMax) for (const [name] of all) whole.add(name);
  const inside = all.filter(([name]) => !whole.has(name));
  return [...Array.from(whole, (name = '') => [name]), ...inside];
}

function isSamePath(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name, at) => name === other[at]);
}

function memberAt(value: JsonObject, [name = '', ...rest]: readonly string[]): Json | undefined {
  const member = Object.hasOwn(value, name) ? value[name] : undefined;
  if (rest.length === 0) return member;
  return isJsonObject(member) ? memberAt(member, rest) : undefined;
}

/** Members of an object by their paths. */
type Members = readonly (readonly [path: readonly string[], member: Json])[];

function membersAt(value: JsonObject, paths: readonly (readonly string[])[]): Members {
  return paths.flatMap((path) => {
    const member = memberAt(value, path);
    return member === undefined ? [] : [[path, member] as const];
  });
}

/** Adds members in one pass, because there may be thousands. */
function withMembers(value: JsonObject, members: Members): JsonObject {
  if (members.length === 0) return value;
  const result = new Map(Object.entries(value));
  for (const [[name = '', ...rest], member] of members) {
    if (rest.length === 0) result.set(name, member);
  }
  const inner = members.filter(([{ length }]) => length > 1);
  for (const [name, those] of Map.groupBy(inner, ([[first = '']]) => first)) {
    const at = result.get(name);
    const deeper = those.map(([[, ...rest], member]) => [rest, member] as const);
    result.set(name, withMembers(isJsonObject(at) ? at : {}, deeper));
  }
  return Object.fromEntries(result);
}

/** Removes members in one pass. */
function withoutMembers(value: JsonObject, paths: readonly (readonly string[])[]): JsonObject {
  const result = new Map(Object.entries(value));
  for (const [name = '', ...rest] of paths) if (rest.length === 0) result.delete(name);
  const inner = paths.filter(({ length }) => length > 1);
  for (const [name, those] of Map.groupBy(inner, ([first = '']) => first)) {
    const at = result.get(name);
    const deeper = those.map(([, ...rest]) => rest);
    if (isJsonObject(at)) result.set(name, withoutMembers(at, deeper));
  }
  return Object.fromEntries(result);
}
