import { defineModule } from '../../core/module.ts';
import { compareDraft } from './compare.ts';

/** The answers and pictures of a draft beside those of the live site. */
export const compare = defineModule({
  name: 'compare',
  needs: ['breadcrumbs', 'drafts', 'rules', 'visits'],
  operations: [compareDraft],
});
