import { Failure } from '../../model/failure.ts';
import { isJsonObject, type Json, type JsonObject } from '../../model/json.ts';
import { ruleBytesMax } from './limits.ts';
import { ruleKinds, type Rule } from '../../model/rule.ts';
import { mergeEnginedata, splitEnginedata } from './enginedata.ts';
import { fieldDefinitions, isRuleKind, type Placing } from './fields.ts';
import {
  difference,
  fieldsOf,
  flatten,
  requireRoom,
  stillWaiting,
  type Named,
} from '../records/placement.ts';

/** What a write of page-rule fields comes to. */
interface Placement {
  /** The change to log: every field that is new or other than before, null for one that is gone. */
  readonly data: JsonObject;
  /** Names among the fields sent that were kept in `_unknowns_`. */
  readonly unknowns: readonly string[];
}

/**
 * Puts the fields a caller sent into their places (docs/design/page-rules.md#invalid-values): what
 * is valid for the rule's kind becomes a field, all else lands in `_unknowns_`; what lay there and
 * has become valid moves up; null removes from both. `shown` holds what a read shows of the
 * server's own fields, so that a caller that sends back what it read changes nothing. Throws
 * `invalid` when the rule would have no usable path or kind, `too_large` past a limit.
 */
export function placeFields({
  current,
  sent,
  shown,
  engines,
  isText = false,
}: {
  readonly current: Rule | undefined;
  readonly sent: JsonObject;
  readonly shown: JsonObject;
  readonly engines: ReadonlySet<string>;
  /** Whether the fields came as a form, which has texts only. */
  readonly isText?: boolean;
}): Placement {
  const before = fieldsOf(current);
  const given = flatten(sent, new Map([...Object.entries(shown), ...before.fields]));
  const waiting = stillWaiting(before, sent);
  const pending = new Map([...waiting, ...given]);
  const placing = placingOf(before.fields, pending, { engines, isText });

  const fields = new Map<string, Json>();
  const unknowns = new Map<string, Json>();
  for (const name of fieldDefinitions.keys()) {
    const old = before.fields.get(name);
    const next = pending.get(name);
    if (old === undefined && next === undefined && name !== 'kind') continue;
    const placed =
      name === 'enginedata'
        ? placeEnginedata(old, { sent: given.get(name), waiting: waiting.get(name), placing })
        : placeField(name, { old, next, placing });
    if (placed.field !== undefined) fields.set(name, placed.field);
    if (placed.unknown !== undefined) unknowns.set(name, placed.unknown);
  }
  for (const [name, value] of pending) {
    if (value !== null && !fieldDefinitions.has(name)) unknowns.set(name, value);
  }

  if (!fields.has('origin')) fields.set('origin', '*');
  if (placing.engine !== undefined) fields.set('engine', placing.engine);
  requireUsable(fields, unknowns);
  const rest = new Map([...fields].filter(([name]) => name !== 'content'));
  requireRoom('The rule without its content', { fields: rest, unknowns }, ruleBytesMax);
  return {
    data: difference(before, { fields, unknowns }),
    unknowns: [...given.keys()].filter((name) => unknowns.has(name)),
  };
}

function placingOf(
  fields: Named,
  pending: Named,
  { engines, isText }: Pick<Placing, 'engines' | 'isText'>,
): Placing {
  const wanted = pending.get('kind');
  const inferred = (pending.get('content') ?? null) === null ? undefined : 'content';
  const kind = [wanted, wanted === null ? undefined : fields.get('kind'), inferred].find(
    isRuleKind,
  );
  if (kind === undefined) {
    throw new Failure(
      'invalid',
      wanted === undefined || wanted === null
        ? `kind is missing: one of ${ruleKinds.join(', ')}.`
        : `kind ${JSON.stringify(wanted).slice(0, 80)} is not one of ${ruleKinds.join(', ')}.`,
      { field: 'kind' },
    );
  }
  // The engine that the rule will have decides, not one that waits in `_unknowns_`.
  const { field: engine, unknown } = placeField('engine', {
    old: fields.get('engine'),
    next: pending.get('engine'),
    placing: { kind, engine: undefined, engines, isText },
  });
  if (typeof engine === 'string') return { kind, engine, engines, isText };
  const isForm = kind.endsWith('-record') && unknown === undefined && engines.has('form');
  return { kind, engine: isForm ? 'form' : undefined, engines, isText };
}

/**
 * Where an enginedata goes: what was sent, or else what is in force with what waits beside it; of
 * that, the members that are valid, and those that are not.
 */
function placeEnginedata(
  old: Json | undefined,
  {
    sent,
    waiting,
    placing,
  }: {
    readonly sent: Json | undefined;
    readonly waiting: Json | undefined;
    readonly placing: Placing;
  },
): { field?: Json; unknown?: Json } {
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
 * Where one field's old value and its next one (sent now, or waiting since earlier) go; null
 * removes both.
 */
function placeField(
  name: string,
  { old, next, placing }: { old: Json | undefined; next: Json | undefined; placing: Placing },
): { field?: Json; unknown?: Json } {
  if (name === 'kind') {
    const isUsed = next === undefined || next === null || isRuleKind(next);
    return isUsed ? { field: placing.kind } : { field: placing.kind, unknown: next };
  }
  if (next === null) return {};
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

function requireUsable(fields: Named, unknowns: Named): void {
  if (fields.has('path')) return;
  const message = !unknowns.has('path')
    ? 'path is missing: the URL path that the rule answers, such as /news or /news/*.'
    : 'path cannot be used: it starts with /, has no . or .. segments, no control characters, ' +
      'no backslash or encoded slash, and at most one *, at its end.';
  throw new Failure('invalid', message, { field: 'path' });
}
