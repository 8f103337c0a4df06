import { Failure } from '../../model/failure.ts';
import type { Hook } from '../../model/hook.ts';
import type { Json, JsonObject } from '../../model/json.ts';
import { hookBytesMax } from '../../model/limits.ts';
import type { Problem } from '../../model/problem.ts';
import { unknownField } from '../problems.ts';
import { hookFields, type HookField } from './hook-fields.ts';
import { difference, fieldsOf, flatten, requireRoom, stillWaiting } from '../rules/named-fields.ts';

/**
 * Puts the fields that a caller sent for a hook into their places: what is valid becomes a field,
 * null puts back what stands there by itself, all else waits in `_unknowns_`
 * (docs/design/page-rules.md#invalid-values). Returns the change to log. Throws `invalid` where a
 * field that decides what is sent where is missing or not valid, `too_large` past a limit. `shown`
 * is what a read shows besides the fields.
 */
export function placeHookFields(
  current: Hook | undefined,
  sent: JsonObject,
  shown: JsonObject,
): JsonObject {
  const before = fieldsOf(current);
  const given = flatten(sent, new Map([...Object.entries(shown), ...before.fields]));
  const pending = new Map([...stillWaiting(before, sent), ...given]);
  // What the server itself has written stays.
  const fields = new Map([...before.fields].filter(([name]) => !hookFields.has(name)));
  const unknowns = new Map([...pending].filter(([name]) => !hookFields.has(name)));
  for (const [name, value] of unknowns) if (value === null) unknowns.delete(name);
  // Whoever sends an answer of insert again is not to have the secret in it kept and shown.
  unknowns.delete('secret');
  for (const [name, definition] of hookFields) {
    const placed = placeField(definition, before.fields.get(name), pending.get(name));
    if (placed.refused === true) throw refusal(name, definition, pending.get(name));
    if (placed.field !== undefined) fields.set(name, placed.field);
    if (placed.unknown !== undefined) unknowns.set(name, placed.unknown);
  }
  requireRoom('The hook', { fields, unknowns }, hookBytesMax);
  return difference(before, { fields, unknowns });
}

interface PlacedField {
  readonly field?: Json;
  readonly unknown?: Json;
  readonly refused?: true;
}

/** Where the old value of a field and the next one go; null stands for what is there by itself. */
function placeField(
  { standard, decides, required, parse }: HookField,
  old: Json | undefined,
  next: Json | undefined,
): PlacedField {
  if (next !== undefined && next !== null) {
    const valid = parse(next);
    if (valid !== undefined) return { field: valid };
    if (decides !== undefined) return { refused: true };
  }
  const field = (next === null ? undefined : old) ?? standard;
  if (field === undefined && required === true) return { refused: true };
  return {
    ...(field !== undefined && { field }),
    ...(next !== undefined && next !== null && { unknown: next }),
  };
}

function refusal(name: string, { decides = '' }: HookField, value: Json | undefined): Failure {
  const what = (value ?? null) === null ? 'is missing' : 'cannot be used';
  return new Failure('invalid', `${name} ${what}: it has to be ${decides}.`, { field: name });
}

/** What is wrong with fields of a hook that were sent now, as they wait in its `_unknowns_`. */
export function hookProblems(unknowns: JsonObject, names: readonly string[]): readonly Problem[] {
  const known = [...hookFields.keys()];
  return names.map((name) => {
    if (!hookFields.has(name)) return unknownField(name, name, known);
    const value = JSON.stringify(unknowns[name]).slice(0, shownCharactersMax);
    const message = `${name} cannot be ${value}; it is kept in _unknowns_ and not in force.`;
    return { field: name, reason: 'bad_format', message };
  });
}

const shownCharactersMax = 80;
