import { clientCommand } from '../../cli/remote/client-command.ts';
import { listSubcommand } from '../../cli/remote/list-command.ts';
import { operationSubcommands } from '../../cli/remote/operation-command.ts';

const list = listSubcommand('login.list', {
  summary: 'list the open sessions of visitors',
  options: { user: { value: 'name', description: 'only the sessions of this user' } },
  columns: {
    ID: ({ id }) => id,
    CREATED: ({ created }) => created,
    EXPIRES: ({ expires }) => expires,
    ROLES: ({ roles }) => roles.join(',') || '-',
    USER: ({ user }) => user,
  },
  none: 'Nobody has signed in by [login].',
});

/** `waymark login list | end`. */
export const defineLogin = clientCommand({
  description: 'Show and end the sessions of visitors who have signed in, through the HTTP API.',
  // Only the console opens itself with the session of a visitor.
  subcommands: operationSubcommands('login', { list }, ['console']),
});
