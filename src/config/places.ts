import { readlink } from 'node:fs/promises';
import { join, parse, resolve, sep } from 'node:path';

/** As many links on the way to one file as Linux follows (path_resolution(7)). */
const linksMax = 40;

/**
 * The places in the file system that decide what is read at these paths: the files themselves,
 * under their real names, and every symbolic link on the way to them; absolute paths.
 */
export async function placesOf(files: readonly string[]): Promise<ReadonlySet<string>> {
  const places = new Set<string>();
  for (const file of files) {
    for (const place of await placesOnTheWay(resolve(file))) places.add(place);
  }
  return places;
}

async function placesOnTheWay(file: string): Promise<readonly string[]> {
  const links: string[] = [];
  let { root: at } = parse(file);
  let pending = segments(file);
  for (let segment = pending.shift(); segment !== undefined; segment = pending.shift()) {
    const next = join(at, segment);
    const target = await linkTarget(next);
    if (target === undefined || links.length === linksMax) {
      at = next;
      continue;
    }
    links.push(next);
    const path = resolve(at, target);
    pending = [...segments(path), ...pending];
    at = parse(path).root;
  }
  return [...links, at];
}

function segments(path: string): string[] {
  return path.slice(parse(path).root.length).split(sep).filter(Boolean);
}

async function linkTarget(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch {
    // Not a link, or nothing at all: what is wrong with it, reading the file will say.
    return undefined;
  }
}
