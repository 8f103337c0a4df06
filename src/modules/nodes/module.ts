import { defineModule } from '../../core/module.ts';
import { readNodeSecrets } from './operations/access.ts';
import { insertFromNode } from './operations/insert.ts';
import { followLog, readLogEnd, readLogRows } from './operations/log.ts';
import { discardEntry, listOutbox, retryEntry } from './operations/outbox.ts';
import { listNodes, reportNode } from './operations/reports.ts';

/** Replicas and counters that follow a centre: `[node]`. */
export const nodes = defineModule({
  name: 'nodes',
  needs: ['login', 'peers', 'rules', 'tables', 'webhooks'],
  operations: [
    readLogEnd,
    readLogRows,
    followLog,
    reportNode,
    listNodes,
    readNodeSecrets,
    insertFromNode,
    listOutbox,
    retryEntry,
    discardEntry,
  ],
  commands: [
    {
      name: 'node',
      summary: 'show the replicas and counters that follow a server',
      load: async () => (await import('./command.ts')).defineNode,
    },
    {
      name: 'outbox',
      summary: 'show and repair the outbox of a counter',
      load: async () => (await import('./outbox-command.ts')).defineOutbox,
    },
    {
      name: 'promote',
      summary: 'make a replica the centre',
      load: async () => (await import('./promote-command.ts')).definePromote,
    },
  ],
});
