import { type Module } from '../../core/module.ts';

/** Backup, check of the data, and secrets that leave the log. */
export const upkeep: Module = {
  name: 'upkeep',
  needs: ['drafts', 'nodes', 'rules', 'tables', 'webhooks'],
  commands: [
    {
      name: 'backup',
      summary: 'copy the data folder while the server runs',
      load: async () => (await import('./backup-command.ts')).defineBackup,
    },
    {
      name: 'purge-secret',
      summary: 'remove former secrets from the log',
      load: async () => (await import('./purge-secret-command.ts')).definePurgeSecret,
    },
  ],
};
