import { serverUrl } from '../../core/config/addresses.ts';
import { checkFile } from '../../core/config/files.ts';
import { type FieldsOf, fileKey, optional, single } from '../../core/config/ini-key.ts';
import { iniSection, problemOf } from '../../core/config/ini-section.ts';
import { nodeNameCharactersMax } from '../../core/config/limits.ts';
import { choice, shortText, size, wholeNumber } from '../../core/config/values.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    readonly node: Omit<FieldsOf<typeof nodeKeys>, 'name'> & { readonly name: string };
  }
}

/** The highest value of `outbox_entries`. */
const outboxEntriesLimit = 1_000_000_000;

const nodeKeys = {
  role: single(choice('all', 'central', 'replica', 'counter'), 'all', {
    about: 'The role of this machine among several.',
    example: 'counter',
    restart: true,
  }),
  name: optional(shortText(nodeNameCharactersMax), {
    about: 'The name of this machine; by default its hostname.',
    example: 'boathouse',
    restart: true,
  }),
  central: optional(serverUrl, {
    about: 'The URL of the Waymark whose log this one copies and follows.',
    example: 'https://www.example.com',
    restart: true,
    since: '0.2',
  }),
  key_file: fileKey({
    holds: 'an API key',
    checkPath: checkFile,
    about:
      'A file with an API key of the centre, with the scope `follow` and bound to `name`. The ' +
      'server reads it again when it connects.',
    example: 'central.key',
    restart: true,
    since: '0.2',
  }),
  outbox_entries: single(wholeNumber(1, outboxEntriesLimit), '1000000', {
    field: 'outboxEntriesMax',
    about:
      'The most entries that the outbox of a counter has, waiting or refused. A full outbox ' +
      'refuses further events and rows with 503.',
    example: '100000',
    restart: true,
    since: '0.2',
  }),
  outbox_size: single(size, '4GiB', {
    field: 'outboxBytesMax',
    about: 'The most bytes that they have together.',
    example: '500MiB',
    restart: true,
    since: '0.2',
  }),
  place: optional(shortText(253), {
    about: 'Where the machine is, such as a branch: the condition `place` of breadcrumbs.',
    example: 'harbour',
    since: '0.2',
  }),
};

/** `[node]`: the part of this machine among several. */
export const nodeSection = iniSection({
  header: 'node',
  keys: nodeKeys,
  place: 'node',
  since: '0.1',
  about: 'Without `central`, a reload applies all of these keys.',
  example: {
    lines: {
      role: 'counter',
      name: 'boathouse',
      central: 'https://www.example.com',
      key_file: 'central.key',
    },
  },
  check([node]) {
    if (node?.isValid !== true) return [];
    const { role, central, key_file: keyFile, name } = node.values;
    const at = (key: string, message: string) => [problemOf(node, key, message)];
    if (central === undefined) {
      if (role === 'replica') return at('role', '`role = replica` needs `central`, too');
      return keyFile === undefined ? [] : at('key_file', '`key_file` needs `central`, too');
    }
    if (role === 'all' || role === 'central') {
      return at('central', '`central` needs `role = replica` or `role = counter`');
    }
    if (keyFile === undefined) return at('central', '`central` needs `key_file`, too');
    return name === undefined ? at('central', '`central` needs `name`, too: that of the key') : [];
  },
  settings: (fields, { hostName }) => ({ ...fields, name: fields.name ?? hostName }),
  // Without a centre, role and name are only read when a hook is delivered.
  isFixed: (before, after) => (before.node.central ?? after.node.central) !== undefined,
});
