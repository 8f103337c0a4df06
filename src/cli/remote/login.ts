import { callApi } from './api-client.ts';
import { clientCommand, table, type Subcommand } from './client-command.ts';
import { operationSubcommands } from './operation-command.ts';

const list: Subcommand = {
  summary: 'list the open sessions of visitors',
  options: { user: { value: 'name', description: 'only the sessions of this user' } },
  async *run(_args, { api, input }) {
    let after: string | undefined;
    let count = 0;
    do {
      const v = { ...input, ...(after !== undefined && { after }) };
      const answer = await callApi(api, 'login.list', { v });
      const { rows, next } = answer.data;
      const cells = rows.map(({ id, user, roles, created, expires }) => {
        return [id, created, expires, roles.join(',') || '-', user];
      });
      count += rows.length;
      const heading = ['ID', 'CREATED', 'EXPIRES', 'ROLES', 'USER'];
      yield {
        answer,
        lines: rows.length === 0 ? [] : table(heading, cells),
        notes: next === null && count === 0 ? ['Nobody has signed in by [login].'] : [],
      };
      after = next ?? undefined;
    } while (after !== undefined);
  },
};

/** `waymark login list | end`. */
export const defineLogin = clientCommand({
  description: 'Show and end the sessions of visitors who have signed in, through the HTTP API.',
  // Only the console opens itself with the session of a visitor.
  subcommands: operationSubcommands('login', { list }, ['console']),
});
