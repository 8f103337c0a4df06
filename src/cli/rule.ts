import type { Rule } from '../model/rule.ts';
import { clientCommand } from './client.ts';
import { recordActs } from './record-acts.ts';

/** `waymark rule list | read | insert | edit | history | invalidate`. */
export const rule = clientCommand({
  usage:
    'rule list [--origin O] [--path P] [--kind K] [--table T] [--engine E] [--text WORDS] ' +
    '[--as-of T] | rule read ID [--as-of T] | rule history ID | ' +
    'rule insert JSON|@FILE|- [--vk KEY] | rule edit ID JSON|@FILE|- [--vk KEY] | ' +
    'rule invalidate [ID] [--txn TXN] [--by KEY] [--from T] [--until T] [--confirm DIGEST]',
  summary: 'write and read page rules',
  acts: recordActs({
    family: 'svc1.userinterface',
    noun: 'page rule',
    command: 'rule',
    filters: {
      origin: 'text',
      path: 'text',
      kind: 'text',
      table: 'text',
      engine: 'text',
      text: 'text',
      as_of: 'text',
    },
    listLines: (rows) =>
      (rows as unknown as readonly Rule[]).map(({ id, origin, path, kind }) =>
        [id, kind, origin, path].join('\t'),
      ),
  }),
});
