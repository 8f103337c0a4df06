import { resolve } from 'node:path';
import { type FieldsOf, fileKey, list, optional } from '../../core/config/ini-key.ts';
import {
  iniSection,
  lineOf,
  type ParsedSection,
  problemOf,
  type ReadFiles,
} from '../../core/config/ini-section.ts';
import { type LineProblem, quoted } from '../../core/config/problem.ts';
import { fileProblem, readJson } from '../../core/config/references.ts';
import { anyText, type ValueParser } from '../../core/config/values.ts';
import { isEventType } from '../../core/values/event-type.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { MIB } from '../../core/values/units.ts';
import { type TableDefinition, tableNameMistake } from './table.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    readonly tables: readonly TableConfig[];
    readonly eventTypes: readonly EventTypeConfig[];
  }
}

/** `[table.<name>]`: a table of records. */
interface TableConfig extends FieldsOf<typeof tableKeys> {
  readonly name: string;
  /** The table as it is stored, with the content of the schema's file. */
  readonly definition: Omit<TableDefinition, 'id'>;
}

/** `[event.<name>]`: a type of events that applications insert. */
interface EventTypeConfig extends FieldsOf<typeof eventKeys> {
  readonly name: string;
  /** The JSON Schema of the data, the content of the file. */
  readonly schema: JsonObject;
}

const schemaBytesMax = MIB;

/** The name of a table of records. */
const tableName: ValueParser<string> = (value) => {
  const refused = tableNameMistake(value);
  return refused === undefined ? { value } : { refused };
};

/** The name of an event type. */
const eventType: ValueParser<string> = (value) =>
  isEventType(value)
    ? { value }
    : { refused: 'an event type is dotted, in lower case, such as `order.shipped`' };

const tableKeys = {
  schema: fileKey({
    field: 'schemaFile',
    about: 'A file with the JSON Schema of a row.',
    example: 'tables/letters.json',
  }),
  key: optional(anyText, {
    about: 'The field that identifies a row; its values are unique.',
    example: 'sku',
    since: '0.2',
  }),
  index: list(anyText, '', {
    about: 'Fields that lists may filter and sort by.',
    example: 'price, shop',
    since: '0.2',
  }),
  search: list(anyText, '', {
    about: 'Fields in which lists find text.',
    example: 'name, description',
    since: '0.2',
  }),
  title: optional(anyText, {
    about: 'The field that stands for a row in other tables.',
    example: 'name',
    since: '0.2',
  }),
  owner: optional(anyText, {
    about: 'The field with the name of the user who owns a row.',
    example: 'customer',
    since: '0.2',
  }),
  read: list(anyText, '', {
    about: 'Who may read rows: scopes (`record.read` by default), `anonymous`, `user`.',
    example: 'anonymous',
    since: '0.2',
  }),
  insert: list(anyText, '', {
    about: 'Who may insert rows: scopes (`record.write` by default), `anonymous`, `user`.',
    example: 'anonymous',
    since: '0.2',
  }),
  edit: list(anyText, '', {
    about: 'Who may edit and delete rows: scopes (`record.write` by default), `anonymous`, `user`.',
    example: 'user',
    since: '0.2',
  }),
  honeypot: optional(anyText, {
    about: 'The name of a form field that people leave empty.',
    example: 'website',
    since: '0.2',
  }),
  events: optional(anyText, {
    about: 'Events that a change of a field raises.',
    example: 'stock.level_changed: stock crosses 0',
    since: '0.2',
  }),
  host: optional(anyText, {
    about: 'The data host that has the rows, in place of this server.',
    example: 'https://data.example.com/svc1/ws',
    since: '0.2',
  }),
  host_key_file: fileKey({
    holds: 'an API key',
    about: 'A file with an API key of the data host.',
    example: 'data-host.key',
    since: '0.2',
  }),
};

/** `[table.<name>]`: a table of records. */
export const tableSection = iniSection({
  header: 'table.<name>',
  keys: tableKeys,
  place: 'tables',
  since: '0.1',
  parseName: tableName,
  about: 'A table whose rows a form shows or changes.',
  example: { name: 'product', lines: { schema: 'tables/product.json', key: 'sku' } },
  check: (tables) =>
    tables.flatMap(({ name, line, values, isValid }) => {
      if (!isValid || (values.schema ?? values.host) !== undefined) return [];
      const needed = 'a `schema`, or a `host` that has it';
      return [{ line, message: `${quoted(`[table.${name}]`)} needs ${needed}` }];
    }),
  read: async (section, { folder }) => ({
    ...filesOf(section, folder),
    ...(await readTable(section, folder)),
  }),
  settings: ({ ...fields }, { content: { definition } }) =>
    definition === undefined ? undefined : { definition, ...fields },
});

const eventKeys = {
  schema: fileKey({
    field: 'schemaFile',
    about: 'A file with the JSON Schema of the data; an event that breaks it is refused.',
    example: 'events/order-shipped.json',
  }),
  summary: optional(anyText, {
    about: 'When such an event occurs.',
    example: 'An order has left the house.',
  }),
};

/** `[event.<name>]`: a type of events that applications insert. */
export const eventSection = iniSection({
  header: 'event.<name>',
  keys: eventKeys,
  place: 'eventTypes',
  since: '0.3',
  parseName: eventType,
  about:
    'A type of events that applications insert. The name is that of the type, such as ' +
    '`[event.order.shipped]`.',
  example: { name: 'order.shipped' },
  read: async (section, { folder }) => ({
    ...filesOf(section, folder),
    ...(await readEventSchema(section, folder)),
  }),
});

function filesOf(
  { values: { schema } }: { readonly values: { readonly schema: string | undefined } },
  folder: string,
): ReadFiles {
  return schema === undefined ? {} : { files: [resolve(folder, schema)] };
}

/** Reads the definition of a table, with the file of its schema. */
async function readTable(
  section: ParsedSection<typeof tableKeys>,
  folder: string,
): Promise<ReadFiles> {
  const { schema: file, ...values } = section.values;
  const schema =
    file === undefined
      ? undefined
      : await readJson(resolve(folder, file), { bytesMax: schemaBytesMax });
  if (file !== undefined && schema !== undefined && 'refused' in schema) {
    return { problems: fileProblem(section, { key: 'schema', file, refused: schema.refused }) };
  }
  // Another check reports a section without both.
  if (schema === undefined && values.host === undefined) return { problems: [] };
  // Loading the validator takes 30 ms, which a configuration without tables need not spend.
  const { parseDefinition } = await import('./definition.ts');
  const object = schema !== undefined && 'object' in schema ? schema.object : undefined;
  const given = Object.entries({ ...values, schema: object }).filter(
    ([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0),
  );
  const fields = { ...Object.fromEntries(given), name: section.name } as JsonObject;
  const parsed = parseDefinition(fields);
  if ('definition' in parsed) return { content: { definition: parsed.definition } };
  const problems = parsed.mistakes.flatMap(({ field, message }): readonly LineProblem[] => {
    const line = lineOf(section, field);
    const where = `[table.${section.name}]`;
    const named = field === 'schema' && file !== undefined ? ` in ${quoted(file)}` : '';
    return line === undefined ? [] : [{ line, message: `${where}${named}: ${message}` }];
  });
  return { problems };
}

/** Reads the schema of an event type. */
async function readEventSchema(
  section: ParsedSection<typeof eventKeys>,
  folder: string,
): Promise<ReadFiles> {
  const { name, values } = section;
  const { schema: file } = values;
  const read =
    file === undefined
      ? { object: { type: 'object' } }
      : await readJson(resolve(folder, file), { bytesMax: schemaBytesMax });
  if ('refused' in read) {
    return { problems: fileProblem(section, { key: 'schema', file: file ?? '', ...read }) };
  }
  const { eventTypeMistake } = await import('./definition.ts');
  const mistake = eventTypeMistake(name, read.object);
  if (mistake === undefined) return { content: { schema: read.object } };
  const where = `[event.${name}]${file === undefined ? '' : ` in ${quoted(file)}`}`;
  return { problems: [problemOf(section, 'schema', `${where}: ${mistake}`)] };
}
