import type { JsonObject } from '../../../core/values/json/json.ts';
import type { RecordSchema } from '../../../core/operations/records/schema.ts';

const text = { type: 'string' } as const;
const texts = { type: 'array', items: text } as const;
const openObject = { type: 'object', additionalProperties: true } as const;

const who = 'scopes, anonymous (anybody), user (a signed-in user, for the rows that the user owns)';

/** The fields of a table that callers write (docs/design/records.md#tables-and-their-rows). */
const fields: Readonly<Record<string, JsonObject>> = {
  name: { ...text, pattern: '^[a-z][a-z0-9_-]{0,62}$', description: 'It never changes.' },
  schema: {
    ...openObject,
    description: 'JSON Schema 2020-12 of a row: an object, whose properties are the fields.',
  },
  key: { ...text, description: 'The field that identifies a row; its values are unique.' },
  index: { ...texts, description: 'Fields that lists may filter and sort by.' },
  search: { ...texts, description: 'Fields in which lists find text.' },
  title: { ...text, description: 'The field that stands for a row in other tables.' },
  owner: { ...text, description: 'The field with the name of the user who owns a row.' },
  read: { ...texts, description: `Who may read rows: ${who}.` },
  insert: { ...texts, description: `Who may insert rows: ${who}.` },
  edit: { ...texts, description: `Who may edit and delete rows: ${who}.` },
  honeypot: { ...text, description: 'The name of a form field that people leave empty.' },
  events: { ...openObject, description: 'Events that changes of a field raise, by type.' },
  host: { ...text, description: 'The URL of the data host that has the rows.' },
};

/** The schemas of tables. */
export const tableSchema: RecordSchema = {
  title: 'Table',
  fields,
  required: ['name'],
  lasting: ['name'],
  always: ['name'],
  server: {
    rows_pending: {
      type: 'boolean',
      description: 'Whether the server still checks the rows after a change of the schema.',
    },
  },
};

const count = (description: string): JsonObject => ({ type: 'integer', description });

/** The answer to an edit that would make values of rows invalid. */
export const schemaChangeReport: JsonObject = {
  title: 'SchemaChange',
  type: 'object',
  required: ['done', 'rows', 'invalid', 'fields', 'first', 'digest'],
  properties: {
    done: { const: false },
    rows: count('Number of rows of the table.'),
    invalid: count('Number of rows with a value that would no longer be valid.'),
    fields: {
      type: 'object',
      additionalProperties: count('Rows whose value of this field would wait in _unknowns_.'),
    },
    first: {
      type: 'array',
      description: 'The first of these rows.',
      items: {
        type: 'object',
        required: ['id', 'fields'],
        properties: { id: text, fields: texts },
      },
    },
    digest: { ...text, description: 'Send it as confirm to carry this out.' },
  },
};
