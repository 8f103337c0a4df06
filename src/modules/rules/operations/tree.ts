import { type Bounds, isOriginInside } from '../../../core/values/bounds.ts';
import { Failure } from '../../../core/values/failure.ts';
import { originBytesMax, pathBytesMax } from '../../../core/values/limits.ts';
import { hasScope, type Caller } from '../../../core/values/key.ts';
import { isWildcardPath } from '../../../core/values/path.ts';
import { ruleKinds, type RuleKind } from '../rule.ts';
import type { FolderName } from '../../files/folder-names.ts';
import type { Store } from '../../../core/log/store.ts';
import { boundOrigins, boundRoots } from '../bounds/tree.ts';
import { requireInside } from '../bounds/rules.ts';
import { listRowsDefault, listRowsMax } from '../../../core/operations/limits.ts';
import { defineOperation } from '../../../core/operations/operation.ts';
import type { SiteAccess } from '../site-access.ts';
import { parseRuleOrigin } from './fields.ts';
import { shadowsAt } from './shadows.ts';
import { turnsOf } from '../../../core/operations/turns.ts';
import { storedRules } from '../log/family.ts';

/** The parts of userinterface.tree. */
interface TreeParts {
  readonly store: Store;
  readonly site: Pick<SiteAccess, 'explain' | 'hasFile' | 'namesBelow' | 'mountOrigins'>;
}

const text = { type: 'string', nullable: true } as const;

const nodeSchema = {
  type: 'object',
  required: ['name', 'path', 'folder', 'rules'],
  properties: {
    name: { type: 'string', description: 'What follows the path, up to the next / if any.' },
    path: { type: 'string', description: 'The whole path.' },
    folder: { type: 'boolean', description: 'Whether it stands for the paths below it.' },
    mount: {
      type: 'string',
      description: 'The mount of the ini file that has the file or folder, if any.',
    },
    answers: {
      type: 'string',
      enum: ['file', 'rule', 'fetched'],
      description: 'What answers the path: a file before a rule. A folder has none.',
    },
    rules: {
      type: 'array',
      description: 'The page rules of exactly this path.',
      items: {
        type: 'object',
        properties: {
          id: { type: 'string' },
          kind: { type: 'string', enum: ruleKinds },
          source: { type: 'string', description: 'Where a content.fetch rule gets its content.' },
          shadowed: { type: 'string', description: 'What hides it from every visitor, and why.' },
        },
      },
    },
  },
} as const;

/**
 * userinterface.tree: the names directly below a path, as a folder lists them, in the order of
 * their bytes; without an origin, the origins of all page rules and mounts. It reads one folder of
 * each mount. The work depends on the number of names, not on what is below them. Paths of rules
 * over 1,900 bytes are left out. Only the scope admin sees names of files that no visitor can list.
 */
export const ruleTree = defineOperation({
  name: 'svc1.userinterface.tree',
  scope: 'read',
  effect: 'reads',
  inDrafts: true,
  summary: 'Lists the names directly below a path, of page rules and files, as a folder does.',
  output: {
    title: 'RuleTree',
    type: 'object',
    required: ['rows', 'next'],
    properties: {
      origins: { type: 'array', items: { type: 'string' } },
      rows: { type: 'array', items: nodeSchema },
      next: { type: ['string', 'null'], description: 'The after of the next page.' },
      hidden_mounts: {
        type: 'array',
        items: { type: 'string' },
        description: 'The mounts whose names in this folder the key may not see.',
      },
      truncated: { type: 'boolean', description: 'Whether a folder has more names than are read.' },
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
  },
  run:
    ({ store, site }: TreeParts) =>
    async ({ origin, path = '', after, limit = listRowsDefault, shadows = false }, call) => {
      const { bounds } = call.caller;
      if (origin === undefined && bounds !== undefined) {
        const origins = boundOrigins(store.of(storedRules), bounds).filter((one) =>
          isBefore(after ?? '', one),
        );
        const next = origins.length > limit ? (origins[limit - 1] ?? null) : null;
        return { kind: 'data', data: { origins: origins.slice(0, limit), rows: [], next } };
      }
      if (origin === undefined) {
        return { kind: 'data', data: originPage(store, site.mountOrigins, { after, limit }) };
      }
      const canonical = parseRuleOrigin(origin);
      if (canonical === undefined) {
        throw new Failure('invalid', 'origin must be scheme://host[:port], or *.', {
          field: 'origin',
        });
      }
      const roots = bounds && rootsOf(store, { bounds, origin: canonical, path }, call.caller);
      if (roots !== undefined) return { kind: 'data', data: { rows: roots, next: null } };
      const seesAll = hasScope(call.caller, 'admin');
      const files =
        bounds === undefined
          ? await site.namesBelow({ origin: canonical, path }, { seesAll })
          : noFiles;
      const page = {
        ...nodePage(store, files.names, { origin: canonical, path, after, limit }),
        ...(files.hidden.length > 0 && { hidden_mounts: files.hidden }),
        ...(files.isTruncated && { truncated: true }),
      };
      if (!shadows) return { kind: 'data', data: page };
      const rows: TreeNode[] = [];
      const turns = turnsOf(call);
      for (const node of page.rows) {
        if (turns.isOver()) await turns.next();
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
      }
      return { kind: 'data', data: { ...page, rows } };
    },
});

/** Files belong to no page rule: a bound key sees none. */
const noFiles: Awaited<ReturnType<SiteAccess['namesBelow']>> = {
  names: [],
  hidden: [],
  isTruncated: false,
};

/**
 * The nodes at which the tree of a bound key begins; undefined for a path inside of its bounds.
 * Throws `forbidden` for a path beside them.
 */
function rootsOf(
  store: Pick<Store, 'of'>,
  { bounds, origin, path }: { bounds: Bounds; origin: string; path: string },
  caller: Caller,
): readonly TreeNode[] | undefined {
  const roots = boundRoots(bounds, path);
  if (!isOriginInside(bounds, origin) || roots?.length === 0) {
    requireInside(caller, { origin, path: `${path}*` });
  }
  return roots?.flatMap((root) => {
    if (root.folder) return [{ ...root, rules: [] }];
    const [own] = ruleNodes(store, { origin, path: root.path, after: undefined });
    return own === undefined || own.node.name !== '' ? [] : [{ ...own.node, ...root }];
  });
}

interface TreeNode {
  readonly name: string;
  readonly path: string;
  readonly folder: boolean;
  readonly mount?: string;
  readonly answers?: 'file' | 'rule' | 'fetched';
  readonly rules: readonly { readonly id: string; readonly kind: RuleKind }[];
}

/** A node with its key in the order of the tree: a wildcard has its path without the `*`. */
interface KeyedNode {
  readonly key: string;
  readonly node: TreeNode;
}

function nodePage(
  store: Pick<Store, 'of'>,
  files: readonly FolderName[],
  given: { origin: string; path: string; after: string | undefined; limit: number },
): { readonly rows: readonly TreeNode[]; readonly next: string | null } {
  const { path, after, limit } = given;
  const from = after === undefined ? 0 : files.findIndex(({ name }) => isBefore(after, name));
  const rows: TreeNode[] = [];
  let last: string | undefined;
  for (const { key, node } of merged(
    ruleNodes(store, given),
    from < 0 ? [] : files.slice(from),
    path,
  )) {
    // A wildcard and its path without the * are on the same page.
    if (rows.length >= limit && last !== undefined && key !== last) return { rows, next: last };
    rows.push(node);
    last = key;
  }
  return { rows, next: null };
}

function* ruleNodes(
  store: Pick<Store, 'of'>,
  { origin, path, after }: { origin: string; path: string; after: string | undefined },
): Generator<KeyedNode, undefined> {
  for (const { name, isFolder, rules } of store.of(storedRules).nodesBelow(origin, path, after)) {
    const whole = path + name;
    const key = !isFolder && isWildcardPath(whole) ? name.slice(0, -1) : name;
    const shown = rules.map((rule) => ({ ...rule, ...sourceOf(store, rule) }));
    const isFetched = rules.every(({ kind }) => kind === 'content.fetch');
    const answers = isFolder ? {} : ({ answers: isFetched ? 'fetched' : 'rule' } as const);
    yield { key, node: { name, path: whole, folder: isFolder, ...answers, rules: shown } };
  }
}

/** The nodes of rules with those of files, in the order of the bytes of their names. */
function* merged(
  nodes: Generator<KeyedNode, undefined>,
  files: readonly FolderName[],
  path: string,
): Generator<KeyedNode> {
  let at = 0;
  for (const one of nodes) {
    let file = files[at];
    while (file !== undefined && isBefore(file.name, one.key)) {
      yield { key: file.name, node: fileNode(file, path) };
      at += 1;
      file = files[at];
    }
    const { key, node } = one;
    // A folder of both is one node; a wildcard covers the file with its key, and is no part of it.
    if (file !== undefined && file.name === key && node.name === key) {
      at += 1;
      yield { key, node: { ...node, ...fileNode(file, path), rules: node.rules } };
    } else {
      if (file !== undefined && file.name === key) {
        at += 1;
        yield { key, node: fileNode(file, path) };
      }
      yield one;
    }
  }
  for (const file of files.slice(at)) yield { key: file.name, node: fileNode(file, path) };
}

function fileNode({ name, mount }: FolderName, path: string): TreeNode {
  const folder = name.endsWith('/');
  const answers = folder ? {} : ({ answers: 'file' } as const);
  return { name, path: path + name, folder, mount, ...answers, rules: [] };
}

function isBefore(one: string, other: string): boolean {
  return Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0;
}

function sourceOf(
  store: Pick<Store, 'of'>,
  { id, kind }: { readonly id: string; readonly kind: string },
): { readonly source?: string } {
  if (kind !== 'content.fetch') return {};
  const source = store.of(storedRules).rule(id)?.rule.enginedata?.source;
  return typeof source === 'string' ? { source } : {};
}

function originPage(
  store: Pick<Store, 'of'>,
  mountOrigins: readonly string[],
  { after = '', limit }: { readonly after: string | undefined; readonly limit: number },
) {
  const ofRules: string[] = [];
  for (const origin of store.of(storedRules).ruleOrigins(after)) {
    if (ofRules.push(origin) > limit) break;
  }
  const ofMounts = mountOrigins.filter((origin) => isBefore(after, origin));
  const all = [...new Set([...ofRules, ...ofMounts])].toSorted((one, other) =>
    isBefore(one, other) ? -1 : 1,
  );
  const origins = all.slice(0, limit);
  return { origins, rows: [], next: all.length > limit ? (origins.at(-1) ?? null) : null };
}
