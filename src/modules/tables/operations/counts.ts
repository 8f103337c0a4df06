import type { Store } from '../../../core/log/store.ts';
import { defineOperation } from '../../../core/operations/operation.ts';
import { storedTables } from '../log/family.ts';

const count = { type: 'integer', minimum: 0 } as const;

/** table.counts: how many rows each table has; a data host knows those of its own. */
export const countTables = defineOperation({
  name: 'svc1.table.counts',
  scope: 'admin',
  effect: 'reads',
  inDrafts: true,
  summary: 'The number of rows of each table.',
  input: { type: 'object' },
  output: {
    title: 'TableCounts',
    type: 'object',
    required: ['rows'],
    properties: {
      rows: {
        type: 'array',
        items: {
          type: 'object',
          required: ['name', 'rows'],
          properties: {
            name: { type: 'string' },
            rows: { ...count, description: 'Rows that this server has.' },
          },
        },
      },
    },
  },
  run:
    ({ store }: { readonly store: Pick<Store, 'of'> }) =>
    () => {
      const names = [...store.of(storedTables).tablesAfter('')].map(({ table }) => table.name);
      const rows = names.map((name) => ({
        name,
        rows: store.of(storedTables).tableCounts(name).rows,
      }));
      return { kind: 'data', data: { rows } };
    },
});
