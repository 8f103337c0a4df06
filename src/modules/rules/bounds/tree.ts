import { isWildcardOrigin } from '../../../core/values/network/origin-pattern.ts';
import { folderOf, isInside, isOriginInside, type Bounds } from '../../../core/values/bounds.ts';
import type { TreeReads } from '../log/path-tree.ts';

/** A node at which the tree of a bound key begins. */
interface BoundRoot {
  readonly name: string;
  readonly path: string;
  readonly folder: boolean;
}

/**
 * The paths of bounds that are below a path, as nodes of it; undefined for a path inside, whose
 * nodes are those of the page rules. They are there whether a rule is or not.
 */
export function boundRoots({ paths }: Bounds, path: string): readonly BoundRoot[] | undefined {
  if (paths === undefined) return undefined;
  if (isInside({ paths }, { origin: '*', path: `${path}*` })) return undefined;
  const below = paths.filter((one) => one.startsWith(path)).toSorted();
  return below.flatMap((one) => {
    const names = one.endsWith('/') ? [one] : [one, folderOf(one)];
    return names.map((whole) => ({
      name: whole.slice(path.length),
      path: whole,
      folder: whole.endsWith('/'),
    }));
  });
}

/** The origins that a bound key sees: those that it names, or those with page rules inside. */
export function boundOrigins(reads: TreeReads, bounds: Bounds): readonly string[] {
  const { origins, paths = ['/'] } = bounds;
  if (origins?.every((one) => !isWildcardOrigin(one)) === true) return origins.toSorted();
  const inside = [...reads.ruleOrigins('')].filter(
    (origin) =>
      isOriginInside(bounds, origin) && paths.some((path) => hasRuleInside(reads, origin, path)),
  );
  return [...new Set([...(origins ?? []), ...inside])].toSorted();
}

function hasRuleInside(reads: TreeReads, origin: string, path: string): boolean {
  const [below] = reads.nodesBelow(origin, folderOf(path), undefined);
  if (below !== undefined) return true;
  const [first] = path.endsWith('/') ? [] : reads.nodesBelow(origin, path, undefined);
  // A name that is empty is the path itself.
  return first?.name === '';
}
