import { mergeFields } from '../../../core/log/change.ts';
import { failureFrom, type Problem } from '../../../core/values/failure.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import type { Row } from '../row.ts';
import { defineOperation } from '../../../core/operations/operation.ts';
import { problemsMember } from '../../../core/operations/problems.ts';
import { familyFor, fieldsSent, type FamilyCall } from '../../../core/operations/records/family.ts';
import { sentNames } from '../../../core/operations/records/placement.ts';
import { noSuchRecord } from '../../../core/operations/records/read.ts';
import type { RowTable } from './compiled-tables.ts';
import { openTable, rowFamily, type RowParts } from './row-family.ts';
import { valueFromText } from './row-placement.ts';

/**
 * record.check: returns the problems that an insert, or with an id an edit, would find in the
 * fields of a row; writes nothing. Refuses with `not_found`.
 */
export const checkRow = defineOperation({
  name: 'svc1.record.check',
  scope: 'record.write',
  effect: 'reads',
  inDrafts: true,
  summary: 'Says what an insert or edit of a row would say about its fields, and writes nothing.',
  failures: ['not_found'],
  input: {
    type: 'object',
    required: ['table'],
    properties: {
      table: { type: 'string', description: 'The name of the table.' },
      id: { type: 'string', nullable: true, description: 'The id of the row, for an edit.' },
    },
    additionalProperties: true,
  },
  output: {
    title: 'CheckedRow',
    type: 'object',
    required: ['refused', 'problems'],
    properties: {
      refused: { type: 'boolean', description: 'Whether the server would refuse the write.' },
      problems: problemsMember,
    },
  },
  run: (parts: RowParts) => async (input, call) => {
    await rowFamily.prepare?.(call);
    const v = input as unknown as JsonObject;
    const { id, ...sent } = fieldsSent(rowFamily, v);
    const operation = typeof id === 'string' ? 'edit' : 'insert';
    const bound: FamilyCall = { operation, v, call };
    const family = familyFor(rowFamily, bound, parts.store, parts);
    const stored = typeof id === 'string' ? family.find(parts.store, id) : undefined;
    if (typeof id === 'string' && stored === undefined) throw noSuchRecord(family, id);
    const current = stored?.record;
    const given = call.isText === true ? (family.fromText?.(sent) ?? sent) : sent;
    try {
      const data = family.place({ current, sent: given }, parts);
      const after = mergeFields((current ?? {}) as JsonObject, data) as unknown as Row;
      const problems = family.problems(after, sentNames(given), parts);
      return { kind: 'data', data: { refused: false, problems } };
    } catch (thrown) {
      const { table } = openTable(bound, parts.store, parts);
      const refusal = refusalOf(thrown);
      const others = mistakesIn(given, current, table).filter(({ field }) => {
        return field !== refusal.field;
      });
      return { kind: 'data', data: { refused: true, problems: [refusal, ...others] } };
    }
  },
});

/** The problem of a refusal of the fields. Rethrows any other error. */
function refusalOf(thrown: unknown): Problem {
  const failure = failureFrom(thrown);
  const { code, message, field = '' } = failure;
  if (!['invalid', 'conflict', 'too_large', 'forbidden'].includes(code)) throw failure;
  return { field, reason: 'bad_format', message };
}

/** The fields with invalid values, and the missing fields. */
function mistakesIn(
  given: JsonObject,
  current: Row | undefined,
  { fields, required, definition }: RowTable,
): readonly Problem[] {
  const invalid = Object.entries(given).flatMap(([name, value]) => {
    const field = fields.get(name);
    const mistake =
      field === undefined || value === null
        ? undefined
        : field.mistake(valueFromText(value, field));
    return mistake === undefined ? [] : [mistake];
  });
  const has = { ...current, ...given };
  const missing = required
    .filter((name) => (has[name] ?? null) === null)
    .map((name): Problem => {
      const message = `${name} is missing: every row of ${definition.name} has it.`;
      return { field: name, reason: 'missing', message };
    });
  return [...invalid, ...missing];
}
