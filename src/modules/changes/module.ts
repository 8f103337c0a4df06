import { defineModule } from '../../core/module.ts';
import { invalidateChanges } from './invalidate-changes.ts';
import { listChanges } from './list-changes.ts';

/** The changes of the log as a list, and how to revert all of a transaction. */
export const changes = defineModule({
  name: 'changes',
  needs: ['rules', 'tables', 'webhooks'],
  operations: [listChanges, invalidateChanges],
  commands: [
    {
      name: 'change',
      summary: 'list changes, and revert all of a transaction',
      load: async () => (await import('./command.ts')).defineChange,
    },
  ],
});
