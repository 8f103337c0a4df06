import { defineModule } from '../../core/module.ts';
import { listSources } from './sources.ts';

/** Applications and fetched content: `[proxy.<name>]`, `[fetch]`. */
export const proxy = defineModule({
  name: 'proxy',
  needs: ['compression', 'headers', 'rules'],
  operations: [listSources],
  commands: [
    {
      name: 'source',
      summary: 'show the servers that content is fetched from',
      load: async () => (await import('./command.ts')).defineSource,
    },
  ],
});
