import { ruleKinds, type Rule } from '../model/rule.ts';
import { clientCommand, table } from './client-command.ts';
import { asOfOption, recordSubcommands } from './record-commands.ts';

/** `waymark rule list | read | insert | edit | history | invalidate`. */
export const defineRule = clientCommand({
  description: 'Read and write page rules through the HTTP API.',
  subcommands: recordSubcommands({
    family: 'svc1.userinterface',
    noun: 'page rule',
    command: 'rule',
    filters: {
      origin: {
        value: 'origin',
        description: 'only rules for this origin, such as https://example.com',
      },
      path: { value: 'path', description: 'only rules whose path starts with this text' },
      kind: { value: 'kind', description: 'only rules of this kind', values: ruleKinds },
      table: { value: 'name', description: 'only rules of this table' },
      engine: { value: 'name', description: 'only rules of this engine' },
      text: { value: 'words', description: 'only rules whose fields contain this text' },
      as_of: asOfOption,
    },
    listLines: (rows) =>
      table(
        ['ID', 'KIND', 'ORIGIN', 'PATH'],
        (rows as unknown as readonly Rule[]).map(({ id, kind, origin, path }) => [
          ...[id, kind, origin, path],
        ]),
      ),
  }),
});
