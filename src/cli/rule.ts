import { ruleKinds, type Rule } from '../model/rule.ts';
import { clientCommand, table } from './client.ts';
import { asOf, recordActs } from './record-acts.ts';

/** `waymark rule list | read | insert | edit | history | invalidate`. */
export const defineRule = clientCommand({
  description: 'Read and write page rules through the HTTP API.',
  acts: recordActs({
    family: 'svc1.userinterface',
    noun: 'page rule',
    command: 'rule',
    filters: {
      origin: { value: 'origin', description: 'those for an origin, such as https://example.com' },
      path: { value: 'path', description: 'those whose path starts so' },
      kind: { value: 'kind', description: 'those of a kind', values: ruleKinds },
      table: { value: 'name', description: 'those of a table' },
      engine: { value: 'name', description: 'those of an engine' },
      text: { value: 'words', description: 'those whose fields contain this text' },
      as_of: asOf,
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
