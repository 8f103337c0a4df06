import { type Module } from '../../core/module.ts';

/** Rows of tables in PostgreSQL, as they change. */
export const follow: Module = {
  name: 'follow',
  needs: ['peers'],
  commands: [
    {
      name: 'follow',
      summary: 'copy the rows of tables to PostgreSQL as they change',
      load: async () => (await import('./command.ts')).defineFollow,
    },
  ],
};
