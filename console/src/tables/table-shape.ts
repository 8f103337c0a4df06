import type { Json, JsonObject } from '../api/api.ts';
import { typedNumber } from '../api/json.ts';

/** A table as record.schema describes it. */
export interface TableShape {
  readonly table: string;
  readonly schema: JsonObject;
  readonly key?: string;
  readonly title?: string;
  readonly owner?: string;
  readonly index: readonly string[];
  readonly search: readonly string[];
  readonly may: Readonly<Record<'read' | 'insert' | 'edit', string>>;
  readonly references: Readonly<
    Record<string, { readonly table: string; readonly choices: readonly ReferenceChoice[] }>
  >;
}

interface ReferenceChoice {
  readonly value: Json;
  readonly title: Json;
}

/** A row as an operation shows it. */
export type ShownRow = JsonObject & { readonly id: string; readonly seq: number };

/** The schemas of the fields of a row, by name. */
export function fieldsOf({
  schema,
}: Pick<TableShape, 'schema'>): Readonly<Record<string, JsonObject>> {
  return (schema.properties ?? {}) as Readonly<Record<string, JsonObject>>;
}

/** A value as text: JSON if it is none. */
export function valueText(value: Json | undefined): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The text that stands for a row: its title, else its key, else its id. */
export function titleOf({ title, key }: TableShape, row: ShownRow): string {
  const named = [title, key].map((name) => (name === undefined ? '' : valueText(row[name])));
  return named.find((one) => one !== '') ?? row.id;
}

/** A typed text as a value of a field: a number where the field has numbers. */
export function valueOfText(text: string, field: JsonObject | undefined): Json {
  const types = [field?.type ?? 'string'].flat();
  const isNumber = types.some((type) => type === 'number' || type === 'integer');
  const number = isNumber ? typedNumber(text) : undefined;
  if (number !== undefined) return number;
  if (isNumber && text !== '' && Number.isFinite(Number(text))) return Number(text);
  if (types.includes('boolean') && /^(?:true|false)$/.test(text)) return text === 'true';
  return text;
}

/** The titles of the rows that fields refer to, by field and value. */
export function referenceTitles({
  references,
}: TableShape): Readonly<Record<string, Readonly<Record<string, string>>>> {
  return Object.fromEntries(
    Object.entries(references).map(([name, { choices }]) => [
      name,
      Object.fromEntries(choices.map(({ value, title }) => [valueText(value), valueText(title)])),
    ]),
  );
}
