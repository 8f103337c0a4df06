import { defineModule } from '../../core/module.ts';
import { followAccess } from './live-access-operation.ts';
import { metricsSeries } from './metrics-series.ts';
import { serverConfiguration } from './server-configuration.ts';
import { serverStatus } from './server-status.ts';
import { subscribeToState } from './server-subscribe.ts';

/** The state of the server, its metrics and its access log, for people who run it. */
export const status = defineModule({
  name: 'status',
  needs: ['acme', 'cache', 'hosts', 'logs', 'tables', 'webhooks'],
  operations: [serverStatus, serverConfiguration, subscribeToState, metricsSeries, followAccess],
  commands: [
    {
      name: 'log',
      summary: 'print the access log of a running server',
      load: async () => (await import('./log-command.ts')).defineLog,
    },
    {
      name: 'server',
      summary: 'show the state and configuration of a running server',
      load: async () => (await import('./command.ts')).defineServer,
    },
  ],
});
