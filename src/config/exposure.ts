import { realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { lineOf } from './consistency.ts';
import type { ParsedIni } from './parse.ts';
import { shown, type LineProblem } from './problem.ts';

/**
 * What no mount may serve, whatever links lead there: the data folder and private keys. Relative
 * paths start at `folder`.
 */
export async function findExposed(
  ini: ParsedIni,
  { folder }: { readonly folder: string },
): Promise<readonly LineProblem[]> {
  const real = (path: string): Promise<string> => realPath(resolve(folder, path));
  const keys = [ini.tls, ...ini.hosts].flatMap(({ values }) => values.key ?? []);
  const { file: log } = ini.log.values;
  const secrets = [
    { what: 'the data folder', path: await real(ini.server.values.data) },
    ...(log === undefined ? [] : [{ what: 'the access log', path: await real(log) }]),
    ...(await Promise.all(
      keys.map(async (key) => ({ what: 'a private key', path: await real(key) })),
    )),
  ];
  const found = ini.disk.map(async (mount) => {
    const line = lineOf(mount, 'root');
    const root = await real(mount.values.root);
    const exposed = secrets.find(({ path }) => isWithin(path, root));
    if (line === undefined || exposed === undefined) return [];
    const written = shown(mount.values.root);
    return [{ line, message: `\`root\` = ${written} holds ${exposed.what}: keep them apart` }];
  });
  return (await Promise.all(found)).flat();
}

/** A path behind all links, as far as it exists: what is missing will be made there. */
async function realPath(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(await realPath(parent), basename(path));
  }
}

function isWithin(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !/^[A-Za-z]:/.test(way);
}
