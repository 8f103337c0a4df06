import { defineModule } from '../../core/module.ts';
import { batch as batchOperation } from './batch.ts';

/** Many writes in one transaction. */
export const batch = defineModule({
  name: 'batch',
  needs: ['drafts', 'rules', 'tables', 'webhooks'],
  operations: [batchOperation],
});
