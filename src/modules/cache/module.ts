import { defineModule } from '../../core/module.ts';
import { cacheStatus, listCache, purgeCache } from './operations.ts';

/** The shared cache of fetched content (RFC 9111). */
export const cache = defineModule({
  name: 'cache',
  needs: ['proxy', 'rules', 'visitors'],
  operations: [purgeCache, listCache, cacheStatus],
  commands: [
    {
      name: 'cache',
      summary: 'show and purge cached content',
      load: async () => (await import('./command.ts')).defineCache,
    },
  ],
});
