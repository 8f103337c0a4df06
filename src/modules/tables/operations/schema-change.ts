import { createHash } from 'node:crypto';
import type { WorkTurns } from '../../../core/fair/turns.ts';
import { mergeFields } from '../../../core/log/change.ts';
import type { Reads } from '../../../core/log/store.ts';
import type { RecordParts, ReviewedEdit } from '../../../core/operations/records/family.ts';
import { fieldsOf, placeRecord } from '../../../core/operations/records/placement.ts';
import { readInTurns } from '../../../core/operations/turns.ts';
import { Failure } from '../../../core/values/failure.ts';
import {
  type Json,
  type JsonObject,
  canonicalJson,
  sameJson,
} from '../../../core/values/json/json.ts';
import { type CompiledTable, compileTable } from '../compiled-table.ts';
import type { Row } from '../row.ts';
import type { TableDefinition } from '../table.ts';
import { storedTables } from '../log/family.ts';

/** Rows that the report of a schema change lists; it counts the others. */
const reportedRowsMax = 20;

/** The effect of a change of a schema on the rows of a table. */
export interface SchemaEffect {
  readonly rows: number;
  readonly invalid: number;
  readonly fields: Readonly<Record<string, number>>;
  readonly first: readonly { readonly id: string; readonly fields: readonly string[] }[];
}

/**
 * Reports the effect of an edit of a table on its rows, as RecordFamily.review says: undefined for
 * an edit that makes no value invalid, or whose report the caller confirms.
 */
export async function reviewSchemaChange(
  { current, data, confirm, call }: ReviewedEdit<TableDefinition>,
  { store }: Pick<RecordParts, 'store'>,
): Promise<JsonObject | undefined> {
  const { record: table, seq } = current;
  if (data.schema === undefined) return undefined;
  const after = mergeFields(table as unknown as JsonObject, data) as unknown as TableDefinition;
  const effect = await readInTurns({ store }, call, (then, turns) =>
    schemaEffect(then.store, { before: table, after }, turns),
  );
  if (effect.invalid === 0) return undefined;
  const report = { ...effect, first: effect.first.map(({ id, fields }) => ({ id, fields })) };
  const digest = createHash('sha256')
    .update(canonicalJson([seq, data, effect.rows, effect.invalid, effect.fields]))
    .digest('hex');
  if (confirm === digest) return undefined;
  if (confirm !== undefined) {
    const message = 'The rows have changed since the report. Look at a new one, and confirm that.';
    throw new Failure('precondition_failed', message, { field: 'confirm' });
  }
  return { done: false, ...(report as unknown as JsonObject), digest };
}

/** Counts the rows with values that a new schema does not permit. */
export async function schemaEffect(
  store: Pick<Reads, 'of'>,
  { before, after }: { readonly before: TableDefinition; readonly after: TableDefinition },
  turns: WorkTurns,
): Promise<SchemaEffect> {
  const [former, next] = [compileTable(before), compileTable(after)];
  const counts = new Map<string, number>();
  const first: { id: string; fields: readonly string[] }[] = [];
  let [rows, invalid] = [0, 0];
  for (const { id, stored } of store.of(storedTables).rowsAfter(before.name, '')) {
    rows += 1;
    const names = stored === undefined ? [] : newlyInvalid(stored.row, former, next);
    for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
    if (names.length > 0) invalid += 1;
    if (names.length > 0 && first.length < reportedRowsMax) first.push({ id, fields: names });
    if (turns.isOver()) await turns.next();
  }
  return { rows, invalid, fields: Object.fromEntries(counts), first };
}

/** The fields of a row with a value that is valid by one schema and not by the next. */
function newlyInvalid(row: Row, former: CompiledTable, next: CompiledTable): readonly string[] {
  const { fields } = fieldsOf(row);
  const renamed = new Map(
    [...next.fields.values()].flatMap((field) =>
      field.formerName === undefined ? [] : [[field.formerName, field] as const],
    ),
  );
  const lost = [...fields].filter(([name, value]) => {
    if (name === 'table' || former.fields.get(name)?.mistake(value) !== undefined) return false;
    const field = next.fields.get(name) ?? renamed.get(name);
    return field === undefined || field.mistake(value) !== undefined;
  });
  const missing = next.required.filter((name) => {
    const { formerName } = next.fields.get(name) ?? {};
    const has = fields.has(name) || (formerName !== undefined && fields.has(formerName));
    return !has && !former.required.includes(name);
  });
  return [...new Set([...lost.map(([name]) => name), ...missing])];
}

/**
 * The edit that brings a row in line with the schema of its table: values that are not valid move
 * to `_unknowns_`, values there that are valid become fields, and renamed fields keep their values
 * (`x-renamed-from`). Empty for a row that needs none.
 */
export function rowCorrection(row: Row, table: CompiledTable): JsonObject {
  const before = fieldsOf(row);
  const renamed = [...table.fields.values()].flatMap(({ name, formerName }) => {
    if (formerName === undefined || before.fields.has(name)) return [];
    const value = before.fields.get(formerName) ?? before.unknowns.get(formerName);
    return value === undefined ? [] : [[formerName, null] as const, [name, value] as const];
  });
  const gone = [...before.fields.keys()].filter((name) => {
    return name !== 'table' && !table.fields.has(name);
  });
  const data = placeRecord({ current: row, sent: Object.fromEntries(renamed) }, () => ({
    names: new Set([...table.fields.keys(), ...gone]),
    placeField(name, { old, sent, waiting }) {
      const field = table.fields.get(name);
      const candidates = [sent, old, waiting].filter((one): one is Json => {
        return one !== undefined && one !== null;
      });
      if (sent === null) return {};
      const valid = candidates.find((one) => field?.mistake(one) === undefined);
      if (field === undefined || valid === undefined) {
        const [kept] = candidates;
        return kept === undefined ? {} : { unknown: kept };
      }
      const rest = candidates.find((one) => field.mistake(one) !== undefined);
      return rest === undefined ? { field: valid } : { field: valid, unknown: rest };
    },
  }));
  return sameJson(data, {}) ? {} : data;
}
