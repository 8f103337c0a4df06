import { defineModule } from '../../core/module.ts';
import { visitSummary } from './visit-summary.ts';

/** Counts of visits, without cookies and addresses: `[stats]`. */
export const visits = defineModule({
  name: 'visits',
  needs: ['visitors'],
  operations: [visitSummary],
  commands: [
    {
      name: 'visits',
      summary: 'show the visits of pages, and who was refused',
      load: async () => (await import('./command.ts')).defineVisits,
    },
  ],
});
