import { callApi } from './api-client.ts';
import { clientCommand, table, type Subcommand } from './client-command.ts';
import { operationSubcommands } from './operation-command.ts';

const list: Subcommand = {
  summary: 'list entries that wait for the centre, or that it has refused',
  options: {
    refused: { description: 'only entries that the centre has refused' },
    after: { value: 'n', description: 'with --refused: entries after this one', isNumber: true },
    limit: { value: 'n', description: 'at most this many', isNumber: true },
  },
  async *run(_args, { api, input }) {
    const answer = await callApi(api, 'outbox.list', { v: input });
    const { rows, waiting, refused } = answer.data;
    const cells = rows.map(({ n, dtu_txn, id, v, refused: why }) => [
      ...[String(n), dtu_txn, id, typeof v.type === 'string' ? v.type : '-'],
      why === undefined ? 'waits' : `${why.code}: ${why.message}`,
    ]);
    yield {
      answer,
      lines: rows.length === 0 ? [] : table(['N', 'TAKEN', 'ID', 'TYPE', 'STATE'], cells),
      notes: [`${waiting} entries wait, ${refused} were refused.`],
    };
  },
};

/** `waymark outbox list | retry | discard`. */
export const defineOutbox = clientCommand({
  description: 'Show and repair the outbox of a counter, through its HTTP API.',
  subcommands: operationSubcommands('outbox', { list }),
});
