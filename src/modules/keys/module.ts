import { defineModule } from '../../core/module.ts';
import { editKeyById, insertKey, listKeys, readKeyById, revokeKeyById } from './keys.ts';

/** API keys. */
export const keys = defineModule({
  name: 'keys',
  operations: [insertKey, editKeyById, readKeyById, listKeys, revokeKeyById],
  commands: [
    {
      name: 'key',
      summary: 'create, list and revoke API keys',
      load: async () => (await import('./command.ts')).defineKey,
    },
  ],
});
