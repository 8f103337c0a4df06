import type { RecordPart, RecordSchema } from '../../../core/operations/records/schema.ts';

/** The member of every input that names a table. */
const tableMember = { type: 'string', description: 'The name of the table.' } as const;

/** How inputs name a table, and a row of it. */
export const rowPart: RecordPart = {
  members: { table: tableMember },
  naming: 'The id of the row; or in place of it, the key field of the table with its value.',
};

/** The schemas of rows; the schema of the table decides about their fields. */
export const rowSchema: RecordSchema = {
  title: 'Row',
  fields: {},
  required: [],
  lasting: [],
  always: ['table'],
  isOpen: true,
  server: { table: tableMember },
};
