import { Failure } from '../model/failure.ts';
import { isJsonObject, sameJson, type Json, type JsonObject } from '../model/json.ts';
import { ruleBytesMax, unknownsMax } from '../model/limits.ts';
import { ruleKinds, type Rule } from '../model/rule.ts';
import { fieldDefinitions, isRuleKind, type Placing } from './fields.ts';

/** What a write of page-rule fields comes to. */
export interface Placement {
  /** The change to log: every field that is new or other than before, null for one that is gone. */
  readonly data: JsonObject;
  /** Names among the fields sent that were kept in `_unknowns_`. */
  readonly unknowns: readonly string[];
}

/**
 * Puts the fields a caller sent into their places (contract §4.1): what is valid for the rule's
 * kind becomes a field, all else lands in `_unknowns_`; what lay there and has become valid moves
 * up; null removes from both. `shown` holds what a read shows of the server's own fields, so that a
 * caller that sends back what it read changes nothing. Throws `invalid` when the rule would have no
 * usable path or kind, `too_large` past a limit.
 */
export function placeFields({
  current,
  sent,
  shown,
  engines,
}: {
  readonly current: Rule | undefined;
  readonly sent: JsonObject;
  readonly shown: JsonObject;
  readonly engines: ReadonlySet<string>;
}): Placement {
  const before = fieldsOf(current);
  const given = flatten(sent, { ...shown, ...before.fields });
  const pending = { ...before.unknowns, ...given };
  const placing = placingOf(before.fields, pending, engines);

  const fields: Record<string, Json> = {};
  const unknowns: Record<string, Json> = {};
  for (const name of fieldDefinitions.keys()) {
    const placed = placeField(name, { old: before.fields[name], next: pending[name], placing });
    if (placed.field !== undefined) fields[name] = placed.field;
    if (placed.unknown !== undefined) unknowns[name] = placed.unknown;
  }
  for (const [name, value] of Object.entries(pending)) {
    if (value !== null && !fieldDefinitions.has(name)) unknowns[name] = value;
  }

  fields.origin ??= '*';
  requireUsable(fields, unknowns);
  requireWithinLimits(fields, unknowns);
  return {
    data: difference(before, { fields, unknowns }),
    unknowns: Object.keys(given).filter((name) => unknowns[name] !== undefined),
  };
}

interface Fields {
  readonly fields: Readonly<Record<string, Json>>;
  readonly unknowns: Readonly<Record<string, Json>>;
}

function fieldsOf(rule: Rule | undefined): Fields {
  if (rule === undefined) return { fields: {}, unknowns: {} };
  const { _unknowns_: unknowns = {}, ...all } = rule;
  const fields: Record<string, Json> = { ...(all as unknown as JsonObject) };
  Reflect.deleteProperty(fields, 'id');
  return { fields, unknowns };
}

/**
 * The sent fields with a sent `_unknowns_` object opened, less those that only repeat what the
 * caller was shown.
 */
function flatten(sent: JsonObject, shown: JsonObject): Readonly<Record<string, Json>> {
  const { _unknowns_: nested, ...named } = sent;
  const all = { ...(isJsonObject(nested) ? nested : {}), ...named };
  if (nested !== undefined && nested !== null && !isJsonObject(nested)) {
    Object.assign(all, { _unknowns_: nested });
  }
  return Object.fromEntries(
    Object.entries(all).filter(([name, value]) => !sameJson(shown[name], value)),
  );
}

function placingOf(
  fields: Readonly<Record<string, Json>>,
  pending: Readonly<Record<string, Json>>,
  engines: ReadonlySet<string>,
): Placing {
  const wanted = pending.kind;
  const inferred = pending.content === undefined ? undefined : 'content';
  const kind = [wanted, wanted === null ? undefined : fields.kind, inferred].find(isRuleKind);
  if (kind === undefined) {
    throw new Failure(
      'invalid',
      wanted === undefined || wanted === null
        ? `kind is missing: one of ${ruleKinds.join(', ')}.`
        : `kind ${JSON.stringify(wanted).slice(0, 80)} is not one of ${ruleKinds.join(', ')}.`,
      { field: 'kind' },
    );
  }
  const engine = pending.engine === undefined ? fields.engine : pending.engine;
  return {
    kind,
    engine: typeof engine === 'string' && engines.has(engine) ? engine : undefined,
    engines,
  };
}

/**
 * Where one field's old value and its next one (sent now, or waiting since earlier) go; null
 * removes both.
 */
function placeField(
  name: string,
  { old, next, placing }: { old: Json | undefined; next: Json | undefined; placing: Placing },
): { field?: Json; unknown?: Json } {
  if (next === null) return {};
  if (name === 'kind') {
    return next === undefined || isRuleKind(next)
      ? { field: placing.kind }
      : { field: placing.kind, unknown: next };
  }
  const nextField = next === undefined ? undefined : validValue(name, next, placing);
  if (nextField !== undefined) return { field: nextField };
  if (old !== undefined && stillValid(name, old, placing)) {
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
 * A kept value is not parsed again (a canonical path is not an encoded one), only held against the
 * new kind.
 */
function stillValid(name: string, value: Json, placing: Placing): boolean {
  const definition = fieldDefinitions.get(name);
  if (definition?.kinds.includes(placing.kind) !== true) return false;
  return definition.stillValid?.(value, placing) ?? true;
}

function requireUsable(fields: JsonObject, unknowns: JsonObject): void {
  if (fields.path !== undefined) return;
  const message =
    unknowns.path === undefined
      ? 'path is missing: the URL path that the rule answers, such as /news or /news/*.'
      : 'path cannot be used: it starts with /, has no . or .. segments, no control characters, ' +
        'no backslash or encoded slash, and at most one *, at its end.';
  throw new Failure('invalid', message, { field: 'path' });
}

function requireWithinLimits(fields: JsonObject, unknowns: JsonObject): void {
  const names = Object.keys(unknowns);
  if (names.length > unknownsMax) {
    throw new Failure('too_large', `More than ${unknownsMax} fields are not known to Waymark.`, {
      field: names[unknownsMax] ?? '_unknowns_',
    });
  }
  const { content: _content, ...rest } = fields;
  const bytes =
    Buffer.byteLength(JSON.stringify(rest)) + Buffer.byteLength(JSON.stringify(unknowns));
  if (bytes > ruleBytesMax) {
    throw new Failure(
      'too_large',
      `The rule without its content is ${bytes} bytes; at most ${ruleBytesMax} are kept.`,
    );
  }
}

/** The edit that mergeFields turns `before` into `after` with. */
function difference(before: Fields, after: Fields): JsonObject {
  const fields = flatDifference(before.fields, after.fields);
  const unknowns = flatDifference(before.unknowns, after.unknowns);
  return Object.keys(unknowns).length > 0 ? { ...fields, _unknowns_: unknowns } : fields;
}

function flatDifference(before: JsonObject, after: JsonObject): JsonObject {
  const changed: Record<string, Json> = {};
  for (const [name, value] of Object.entries(after)) {
    if (!sameJson(before[name], value)) changed[name] = value;
  }
  for (const name of Object.keys(before)) if (after[name] === undefined) changed[name] = null;
  return changed;
}
