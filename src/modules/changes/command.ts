import type { Operations } from '../../cli/client/operations.ts';
import { callApi } from '../../cli/remote/api-client.ts';
import { type Subcommand, clientCommand, table } from '../../cli/remote/client-command.ts';
import { inputOptions, operationSubcommands } from '../../cli/remote/operation-command.ts';
import { confirmOption, invalidateLines } from '../../cli/remote/record-commands.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { listChanges } from './list-changes.ts';

type ChangeList = Operations['change.list']['output'];
type Filters = Readonly<Record<string, JsonObject>>;

const heading = ['SEQ', 'AT', 'ACTION', 'FAMILY', 'ID', 'TITLE', 'BY', 'TXN'];

const list: Subcommand = {
  summary: 'list the newest changes, or those before a seq',
  options: inputOptions(Object.entries((listChanges.input.properties ?? {}) as Filters)),
  async *run(_args, { api, input }) {
    const answer: JsonObject = await callApi(api, 'svc1.change.list', { v: input });
    const { rows, next } = answer.data as unknown as ChangeList;
    const lines = table(heading, rows.map(cellsOf));
    const notes = next === null ? [] : [`For older changes, repeat it with --before ${next}`];
    yield { answer, lines, notes };
  },
};

function cellsOf(row: ChangeList['rows'][number]): readonly string[] {
  const { seq, dtu_stored: at, action, applies, family, id, title = '', by, by_name, txn } = row;
  const author = by_name === undefined ? by : `${by_name} (${by})`;
  const shown = applies ? action : `${action} (reverted)`;
  return [String(seq), at, shown, family, id, title, author, txn];
}

const invalidate: Subcommand = {
  summary: 'revert all of a transaction; without --confirm, only show what would change',
  args: { '<txn>': 'the transaction: of a batch, an import, a publication' },
  options: { confirm: confirmOption },
  writes: true,
  inDrafts: true,
  async *run([txn = ''], { api, vk, input }) {
    const answer = await callApi(api, 'svc1.change.invalidate', { v: { ...input, txn }, vk });
    const names = { noun: 'record', command: 'change invalidate', isOfAll: true };
    const lines = invalidateLines(answer.data as JsonObject, names, { txn, draft: api.draft });
    yield { answer, lines };
  },
};

/** The command `waymark change`. */
export const defineChange = clientCommand({
  description: 'List the changes of a server, and revert all that a transaction has changed.',
  subcommands: operationSubcommands('change', { list, invalidate }),
});
