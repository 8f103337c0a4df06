import { Failure } from '../../model/failure.ts';
import { originBytesMax, pathBytesMax } from '../../model/limits.ts';
import { ruleKinds } from '../../model/rule.ts';
import type { Store } from '../../store/store.ts';
import { listRowsDefault, listRowsMax } from '../limits.ts';
import { defineOperation } from '../operation.ts';
import { parseRuleOrigin } from './fields.ts';

interface TreeInput {
  origin?: string;
  path?: string;
  after?: string;
  limit?: number;
}

const text = { type: 'string', nullable: true } as const;

const nodeSchema = {
  type: 'object',
  required: ['name', 'path', 'folder', 'rules'],
  properties: {
    name: { type: 'string', description: 'What follows the path, up to the next / if any.' },
    path: { type: 'string', description: 'The whole path.' },
    folder: { type: 'boolean', description: 'Whether it stands for the paths below it.' },
    rules: {
      type: 'array',
      description: 'The page rules of exactly this path.',
      items: {
        type: 'object',
        properties: { id: { type: 'string' }, kind: { type: 'string', enum: ruleKinds } },
      },
    },
  },
} as const;

/**
 * userinterface.tree: the names directly below a path, as a folder lists them, in the order of
 * their bytes; without an origin, the origins of all page rules. The work depends on the number of
 * names, not on that of the rules below them. Paths over 1,900 bytes are left out.
 */
export const ruleTree = defineOperation<{ readonly store: Store }, TreeInput>({
  name: 'svc1.userinterface.tree',
  scope: 'read',
  effect: 'reads',
  summary: 'Lists the names directly below a path of page rules, as a folder does.',
  output: {
    title: 'RuleTree',
    type: 'object',
    required: ['rows', 'next'],
    properties: {
      origins: { type: 'array', items: { type: 'string' } },
      rows: { type: 'array', items: nodeSchema },
      next: { type: ['string', 'null'], description: 'The after of the next page.' },
    },
  },
  input: {
    type: 'object',
    properties: {
      origin: { ...text, maxLength: originBytesMax, description: 'An origin, or *.' },
      path: {
        ...text,
        maxLength: pathBytesMax,
        description: 'The start of the paths, up to a /; empty for all, with the breadcrumbs.',
      },
      after: { ...text, description: 'The next of the page before.' },
      limit: { type: 'integer', minimum: 1, maximum: listRowsMax, nullable: true },
    },
  } as never,
  run:
    ({ store }) =>
    ({ origin, path = '', after, limit = listRowsDefault }) => {
      if (origin === undefined) return { kind: 'data', data: originPage(store, after, limit) };
      const canonical = parseRuleOrigin(origin);
      if (canonical === undefined) {
        throw new Failure('invalid', 'origin must be scheme://host[:port], or *.', {
          field: 'origin',
        });
      }
      const rows: object[] = [];
      let last: string | undefined;
      for (const { name, isFolder, rules } of store.nodesBelow(canonical, path, after)) {
        // A wildcard has the key of its path without the *: both are on the same page.
        const key = !isFolder && name.endsWith('*') ? name.slice(0, -1) : name;
        if (rows.length >= limit && last !== undefined && key !== last) {
          return { kind: 'data', data: { rows, next: last } };
        }
        rows.push({ name, path: path + name, folder: isFolder, rules });
        last = key;
      }
      return { kind: 'data', data: { rows, next: null } };
    },
});

function originPage(store: Pick<Store, 'ruleOrigins'>, after: string | undefined, limit: number) {
  const origins: string[] = [];
  for (const origin of store.ruleOrigins(after ?? '')) {
    if (origins.length === limit) return { origins, rows: [], next: origins.at(-1) ?? null };
    origins.push(origin);
  }
  return { origins, rows: [], next: null };
}
