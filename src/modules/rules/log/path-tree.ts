import type { Database } from 'lmdb';
import type { RuleKind } from '../rule.ts';
import { storedJson } from '../../../core/log/encoding.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { markedKey, unmarkedKey } from './rule-index.ts';

/** A place directly below a prefix of paths. */
interface PathNode {
  /** What follows the prefix: a name, or a name with a `/` for all paths that continue so. */
  readonly name: string;
  /** Whether it represents all paths with further segments. */
  readonly isFolder: boolean;
  /** The rules of exactly this path; of a folder none. */
  readonly rules: readonly { readonly id: string; readonly kind: RuleKind }[];
}

type TreeDatabases = Pick<Databases, 'exact' | 'wildcard'>;

/** The reads of the paths of page rules as a tree. */
export interface TreeReads {
  /**
   * The nodes directly below a prefix of the paths of an origin, after the name of one of them. The
   * caller iterates within one turn of the event loop.
   */
  nodesBelow(origin: string, prefix: string, after: string | undefined): Iterable<PathNode>;
  /**
   * All origins of page rules after one of them. The caller iterates within one turn of the event
   * loop.
   */
  ruleOrigins(after: string): Iterable<string>;
}

/** Creates the reads of the tree. */
export function createTreeReads(databases: TreeDatabases): TreeReads {
  return {
    nodesBelow: (origin, prefix, after) => nodesBelow(databases, { origin, prefix, after }),
    ruleOrigins: (after) => ruleOrigins(databases, after),
  };
}

/**
 * The nodes directly below a prefix of the paths of an origin, in the order of their bytes, after a
 * name. Each takes a seek or two, however many rules are below it. Paths that are too long for a
 * key of the index are left out.
 */
function* nodesBelow(
  databases: TreeDatabases,
  { origin, prefix, after }: { origin: string; prefix: string; after: string | undefined },
): Generator<PathNode> {
  const start = `${origin}\0${prefix}`;
  let from = after === undefined ? Buffer.from(start) : beyond(start, after);
  for (;;) {
    const key = nextKey(databases, from);
    if (key?.startsWith(start) !== true) return;
    const { name, isFolder } = firstSegment(key.slice(start.length));
    if (isFolder) yield { name, isFolder, rules: [] };
    else yield* leaves(databases, key, name);
    from = beyond(start, name);
  }
}

/** All origins of page rules, in the order of their bytes; after one of them. */
function* ruleOrigins(databases: TreeDatabases, after: string): Generator<string> {
  let from = Buffer.from(after === '' ? '\u0002' : `${after}\u0001`);
  for (;;) {
    const key = nextKey(databases, from);
    if (key === undefined) return;
    const origin = key.slice(0, key.indexOf('\0'));
    yield origin;
    from = Buffer.from(`${origin}\u0001`);
  }
}

function firstSegment(rest: string): { readonly name: string; readonly isFolder: boolean } {
  const slash = rest.indexOf('/');
  return slash === -1
    ? { name: rest, isFolder: false }
    : { name: rest.slice(0, slash + 1), isFolder: true };
}

/** The first key after a node: after all its descendants, if it is a folder. */
function beyond(start: string, name: string): Buffer {
  const key = Buffer.from(start + name);
  if (!name.endsWith('/')) return Buffer.concat([key, Buffer.from([0])]);
  key[key.length - 1] = '/'.charCodeAt(0) + 1;
  return key;
}

function nextKey({ exact, wildcard }: TreeDatabases, from: Buffer): string | undefined {
  const found = [exact, wildcard].flatMap((database) => [
    ...database.getKeys({ start: from, limit: 1 }),
  ]);
  const segments = [...wildcard.getKeys({ start: markedKey(from), limit: 1 })];
  const unmarked = segments.flatMap((key) => unmarkedKey(copied(key)) ?? []);
  const all = [...found.map(copied), ...unmarked];
  const [least] = all.sort((one, other) => Buffer.compare(one, other));
  return least?.toString();
}

function copied(key: Uint8Array): Buffer {
  return Buffer.from(key);
}

function* leaves(
  { exact, wildcard }: TreeDatabases,
  key: string,
  name: string,
): Generator<PathNode> {
  const place = Buffer.from(key);
  const rules = [...rulesAt(exact, place), ...rulesAt(wildcard, markedKey(place))];
  if (rules.length > 0) yield { name, isFolder: false, rules };
  const covering = rulesAt(wildcard, place);
  if (covering.length > 0) yield { name: `${name}*`, isFolder: false, rules: covering };
}

function rulesAt(database: Database<string, Uint8Array>, key: Buffer): PathNode['rules'] {
  return [...database.getValues(key)]
    .filter((value) => value.startsWith('['))
    .map((value) => {
      const [id, , , kind] = storedJson(value) as [string, number, number, RuleKind];
      return { id, kind };
    });
}
