import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../../model/failure.ts';
import { originBytesMax, pathBytesMax } from '../../model/limits.ts';
import { ruleKinds } from '../../model/rule.ts';
import type { Store } from '../../store/store.ts';
import { listRowsDefault, listRowsMax, shadowedNodesPerTurn } from '../limits.ts';
import { defineOperation } from '../operation.ts';
import type { SiteAccess } from '../site-access.ts';
import { parseRuleOrigin } from './fields.ts';
import { shadowsAt } from './shadows.ts';

interface TreeInput {
  origin?: string;
  path?: string;
  after?: string;
  limit?: number;
  shadows?: boolean;
}

/** The parts of userinterface.tree. */
interface TreeParts {
  readonly store: Store;
  readonly site: Pick<SiteAccess, 'explain'>;
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
        properties: {
          id: { type: 'string' },
          kind: { type: 'string', enum: ruleKinds },
          shadowed: { type: 'string', description: 'What hides it from every visitor, and why.' },
        },
      },
    },
  },
} as const;

/**
 * userinterface.tree: the names directly below a path, as a folder lists them, in the order of
 * their bytes; without an origin, the origins of all page rules. The work depends on the number of
 * names, not on that of the rules below them. Paths over 1,900 bytes are left out.
 */
export const ruleTree = defineOperation<TreeParts, TreeInput>({
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
      shadows: {
        type: 'boolean',
        nullable: true,
        description: 'Whether to look for what hides the rules; true takes longer.',
      },
    },
  } as never,
  run:
    ({ store, site }) =>
    async ({ origin, path = '', after, limit = listRowsDefault, shadows = false }, call) => {
      if (origin === undefined) return { kind: 'data', data: originPage(store, after, limit) };
      const canonical = parseRuleOrigin(origin);
      if (canonical === undefined) {
        throw new Failure('invalid', 'origin must be scheme://host[:port], or *.', {
          field: 'origin',
        });
      }
      const page = nodePage(store, { origin: canonical, path, after, limit });
      if (!shadows) return { kind: 'data', data: page };
      const rows: TreeNode[] = [];
      for (const node of page.rows) {
        if (node.rules.length === 0) {
          rows.push(node);
          continue;
        }
        const found = shadowsAt({ store, site }, { origin: canonical, path: node.path }, call);
        const rules = node.rules.map((rule) => {
          const shadowed = found.get(rule.id);
          return { ...rule, ...(shadowed !== undefined && { shadowed }) };
        });
        rows.push({ ...node, rules });
        if (rows.length % shadowedNodesPerTurn === 0) await nextTurn();
      }
      return { kind: 'data', data: { ...page, rows } };
    },
});

interface TreeNode {
  readonly name: string;
  readonly path: string;
  readonly folder: boolean;
  readonly rules: readonly { readonly id: string }[];
}

function nodePage(
  store: Pick<Store, 'nodesBelow'>,
  given: { origin: string; path: string; after: string | undefined; limit: number },
): { readonly rows: readonly TreeNode[]; readonly next: string | null } {
  const { origin, path, after, limit } = given;
  const rows: TreeNode[] = [];
  let last: string | undefined;
  for (const { name, isFolder, rules } of store.nodesBelow(origin, path, after)) {
    // A wildcard has the key of its path without the *: both are on the same page.
    const key = !isFolder && name.endsWith('*') ? name.slice(0, -1) : name;
    if (rows.length >= limit && last !== undefined && key !== last) return { rows, next: last };
    rows.push({ name, path: path + name, folder: isFolder, rules });
    last = key;
  }
  return { rows, next: null };
}

function originPage(store: Pick<Store, 'ruleOrigins'>, after: string | undefined, limit: number) {
  const origins: string[] = [];
  for (const origin of store.ruleOrigins(after ?? '')) {
    if (origins.length === limit) return { origins, rows: [], next: origins.at(-1) ?? null };
    origins.push(origin);
  }
  return { origins, rows: [], next: null };
}
