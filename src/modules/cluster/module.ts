import { type Module } from '../../core/module.ts';

/** A log that several machines share, in NATS JetStream: `[cluster]`. */
export const cluster: Module = {
  name: 'cluster',
  needs: ['acme', 'assets', 'nodes'],
  commands: [
    {
      name: 'cluster',
      summary: 'make, show and leave a cluster of several machines',
      load: async () => (await import('./command.ts')).defineCluster,
    },
  ],
};
