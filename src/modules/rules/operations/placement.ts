import { Failure } from '../../../core/values/failure.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../core/values/json/json.ts';
import { ruleKinds, type Rule } from '../rule.ts';
import {
  placeRecord,
  requireSize,
  type FieldValues,
  type FieldWrite,
  type Named,
  type PlacedField,
} from '../../../core/operations/records/placement.ts';
import { mergeEnginedata, splitEnginedata } from './enginedata-placement.ts';
import { fieldDefinitions, isRuleKind, ruleHeaderRefusal, type Placing } from './fields.ts';
import { ruleBytesMax } from './limits.ts';

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
    'no backslash or encoded slash, and at most one *, at its end.'
  );
}

const shownCharactersMax = 80;
