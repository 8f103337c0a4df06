import { defineModule } from '../../core/module.ts';
import { recordOperations } from '../../core/operations/records/write.ts';
import { countTables } from './operations/counts.ts';
import { tableFamily } from './operations/table-family.ts';
import { checkRow } from './rows/check.ts';
import { rowFamily } from './rows/row-family.ts';
import { getRow, getTableSchema } from './rows/row-reads.ts';
import { subscribeToRows } from './rows/subscribe.ts';

/** Records with a JSON Schema: `[table.<name>]`. */
export const tables = defineModule({
  name: 'tables',
  operations: [
    ...recordOperations(tableFamily),
    ...recordOperations(rowFamily),
    countTables,
    checkRow,
    getRow,
    getTableSchema,
    subscribeToRows,
  ],
  commands: [
    {
      name: 'table',
      summary: 'read and write tables',
      load: async () => (await import('./command.ts')).defineTable,
    },
    {
      name: 'record',
      summary: 'read and write records',
      load: async () => (await import('./command.ts')).defineRecord,
    },
  ],
});
