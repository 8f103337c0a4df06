import { clientCommand } from '../../cli/remote/client-command.ts';
import { operationSubcommands } from '../../cli/remote/operation-command.ts';

/** `waymark server status | configuration`. */
export const defineServer = clientCommand({
  description: 'Show the state and the configuration of a running server, through the HTTP API.',
  subcommands: operationSubcommands('server', {}),
});
