import type { Operations } from '../../cli/client/operations.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { callApi } from '../../cli/remote/api-client.ts';
import { UsageError } from '../../cli/command.ts';
import { clientCommand, table, type Subcommand } from '../../cli/remote/client-command.ts';
import { operationSubcommands } from '../../cli/remote/operation-command.ts';
import { wholeNumber } from '../../cli/options.ts';

const list: Subcommand = {
  summary: 'list entries that wait for the centre, or that it has refused',
  options: {
    refused: { description: 'only entries that the centre has refused' },
    code: { value: 'code', description: 'with --refused: only those refused with this code' },
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

/** Changes one refused entry, or all of them in several calls. */
function change(verb: 'retry' | 'discard', summary: string, done: string): Subcommand {
  return {
    summary,
    args: { '[n]': 'the number of one entry' },
    options: {
      all: { description: 'all entries that the centre has refused' },
      code: { value: 'code', description: 'with --all: only those refused with this code' },
    },
    async *run([n], { api, input }) {
      const { all, code } = input as { readonly all?: boolean; readonly code?: string };
      if ((n === undefined) !== (all === true)) {
        throw new UsageError('Say which entries: the number of one, or --all.');
      }
      const ofAll = { all: true, ...(code !== undefined && { code }) };
      const given = n === undefined ? ofAll : { n: wholeNumber(n) };
      let changed = 0;
      let place: { readonly after?: number; readonly up_to?: number } | undefined = {};
      while (place !== undefined) {
        const answer: JsonObject & { readonly data: Operations['outbox.retry']['output'] } =
          await callApi(api, `outbox.${verb}`, { v: { ...given, ...place } });
        const { count, next, up_to } = answer.data;
        changed += count;
        place = next === null ? undefined : { after: next, up_to };
        const end = next === null ? '.' : ' so far.';
        yield { answer, lines: [], notes: [`${changed} ${done}${end}`] };
      }
    },
  };
}

/** `waymark outbox list | retry | discard`. */
export const defineOutbox = clientCommand({
  description: 'Show and repair the outbox of a counter, through its HTTP API.',
  subcommands: operationSubcommands('outbox', {
    list,
    retry: change('retry', 'send entries that the centre has refused again', 'wait again'),
    discard: change('discard', 'remove entries that the centre has refused', 'removed'),
  }),
});
