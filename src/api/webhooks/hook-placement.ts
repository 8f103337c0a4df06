import { isExecutedOn, waitingFields, type Hook, type Node } from '../../model/hook.ts';
import { isJsonObject, type Json, type JsonObject } from '../../model/json.ts';
import { hookBytesMax } from './limits.ts';
import { Failure, type Problem } from '../../model/failure.ts';
import { unknownField } from '../problems.ts';
import { hookFields, type HookField } from './hook-fields.ts';
import { difference, fieldsOf, flatten, requireRoom, stillWaiting } from '../records/placement.ts';

/**
 * Puts the fields that a caller sent for a hook into their places: what is valid becomes a field,
 * null puts back what stands there by itself, all else waits in `_unknowns_`
 * (docs/design/page-rules.md#invalid-values). Returns the change to log. Throws `invalid` where
 * there would be no usable url or event, `too_large` past a limit. `shown` is what a read shows
 * besides the fields.
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
    const next = pending.get(name);
    const old = before.fields.get(name);
    const placed = placeField(definition, { old, next, isSent: given.has(name) });
    if (placed === undefined) throw refusal(name, definition, next);
    if (placed.field !== undefined) fields.set(name, placed.field);
    if (placed.unknown !== undefined) unknowns.set(name, placed.unknown);
  }
  requireRoom('The hook', { fields, unknowns }, hookBytesMax);
  return difference(before, { fields, unknowns });
}

interface PlacedField {
  readonly field?: Json | undefined;
  readonly unknown?: Json | undefined;
}

/**
 * Where the old value of a field and the next one go, which is sent now or waits since earlier;
 * null stands for what is there by itself. Undefined where there would be no hook.
 */
function placeField(
  { standard, required, hasMembers, read }: HookField,
  {
    old,
    next = null,
    isSent,
  }: { readonly old: Json | undefined; readonly next: Json | undefined; readonly isSent: boolean },
): PlacedField | undefined {
  const isReset = next === null && isSent;
  const before = (isReset ? undefined : old) ?? standard;
  // What waited until now comes to the members that count already.
  const members = hasMembers === true && !isSent && isJsonObject(before) ? before : undefined;
  const { value, waiting } = next === null ? {} : read(next, members);
  if (required !== undefined && (waiting !== undefined || (value ?? before) === undefined)) {
    return undefined;
  }
  const field = isJsonObject(members) && isJsonObject(value) ? { ...members, ...value } : value;
  return { field: field ?? before, unknown: waiting };
}

function refusal(name: string, { required = '' }: HookField, value: Json | undefined): Failure {
  const what = (value ?? null) === null ? 'is missing' : 'cannot be used';
  return new Failure('invalid', `${name} ${what}: it has to be ${required}.`, { field: name });
}

/**
 * What is wrong with fields of a hook that were sent now, by their names: with those that wait in
 * its `_unknowns_`, and with those that are valid and say nothing. `node` is undefined where it is
 * not known which node executes hooks.
 */
export function hookProblems(
  hook: Hook,
  sent: readonly string[],
  node: Node | undefined,
): readonly Problem[] {
  const known = [...hookFields.keys()];
  const { fields, unknowns } = fieldsOf(hook);
  const waits = new Set(waitingFields(hook));
  return sent.flatMap((name): readonly Problem[] => {
    const definition = hookFields.get(name);
    const value = unknowns.get(name) ?? fields.get(name);
    if (value === undefined || (definition === undefined && !unknowns.has(name))) return [];
    if (definition === undefined) return [unknownField(name, name, known)];
    const kept = fields.get(name);
    const members = unknowns.has(name) && isJsonObject(kept) ? kept : undefined;
    const problems = definition.read(value, members).problems.map((problem) => {
      const message = `${problem.message} ${pausedMessage}`;
      return waits.has(name) ? { ...problem, message } : problem;
    });
    const isPlaced = name === 'where' && node !== undefined;
    return isPlaced ? [...problems, ...placeProblems(hook, node)] : problems;
  });
}

const pausedMessage = 'The hook is paused until this is corrected.';

/** That no node executes a hook. */
export function placeProblems(hook: Hook, node: Node): readonly Problem[] {
  const { where = '' } = hook;
  if (isExecutedOn(hook, node)) return [];
  const message =
    `No node is known that executes hooks at ${JSON.stringify(where)}: ` +
    `this one is ${JSON.stringify(node.name)}, with the role ${node.role}. Nothing is delivered.`;
  return [{ field: 'where', reason: 'no_effect', message }];
}
