import { defineModule } from '../../core/module.ts';
import { getRender } from './get-render.ts';

/** Templates that the server fills with rows. */
export const rendering = defineModule({
  name: 'rendering',
  needs: ['breadcrumbs', 'compression', 'console', 'rules', 'tables'],
  operations: [getRender],
});
