import { defineModule } from '../../core/module.ts';
import { importLines } from './import-operation.ts';

/** Import and export of records as NDJSON. */
export const transfer = defineModule({
  name: 'transfer',
  needs: ['assets', 'batch', 'drafts', 'rules', 'tables', 'webhooks'],
  operations: [importLines],
  commands: [
    {
      name: 'export',
      summary: 'write rules, hooks, tables and rows as NDJSON',
      load: async () => (await import('./export-command.ts')).defineExport,
    },
    {
      name: 'import',
      summary: 'read rules, hooks, tables and rows from NDJSON',
      load: async () => (await import('./import-command.ts')).defineImport,
    },
  ],
});
