import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../core/config/config.ts';

/**
 * Warnings about `path = /internal` of sections that protect or limit that one page, while there
 * are more below it: `location /internal` of nginx would cover them. A sentence each.
 */
export function narrowPathWarnings(config: Config): readonly string[] {
  const guards = [
    ...config.access.map((one) => ({ ...one, title: `[access.${one.name}]` })),
    ...config.rates.map((one) => ({ ...one, title: `[rate.${one.name}]` })),
  ];
  return guards.flatMap(({ title, path: paths, origin }) => {
    const isBelowCovered = (path: string): boolean =>
      paths.some((one) => /[*/]$/.test(one) && `${path}/`.startsWith(one.replace(/\*$/, '')));
    return paths.flatMap((path) => {
      const isOnePage = !path.endsWith('/') && !path.includes('*');
      if (!isOnePage || isBelowCovered(path)) return [];
      const found = partBelow(config, { path, origin, title });
      if (found === undefined) return [];
      const cure = `write ${path}/ for all of them`;
      return [`${title} covers ${path} alone, and ${found} has paths below it: ${cure}.`];
    });
  });
}

/** What has paths below one, in words. */
function partBelow(
  { disk, proxies, access, rates, headers }: Config,
  {
    path,
    origin,
    title,
  }: { readonly path: string; readonly origin: string; readonly title: string },
): string | undefined {
  const isSameSite = (one: { readonly origin: string }): boolean =>
    origin === '*' || one.origin === '*' || one.origin === origin;
  const isBelow = (one: string): boolean => one.startsWith(`${path}/`);
  const mounts = disk.filter(isSameSite);
  const folder = mounts.find((one) => path.startsWith(one.path) && isFolder(one, path));
  if (folder !== undefined) return `a folder of [disk.${folder.name}]`;
  const places = [
    ...mounts.map((one) => ({ name: `[disk.${one.name}]`, paths: [one.path] })),
    ...proxies
      .filter(isSameSite)
      .map((one) => ({ name: `[proxy.${one.name}]`, paths: [one.path] })),
    ...access.filter(isSameSite).map((one) => ({ name: `[access.${one.name}]`, paths: one.path })),
    ...rates.filter(isSameSite).map((one) => ({ name: `[rate.${one.name}]`, paths: one.path })),
    ...headers
      .filter(isSameSite)
      .map((one) => ({ name: `[headers.${one.name}]`, paths: one.path })),
  ];
  return places.find(({ name, paths }) => name !== title && paths.some(isBelow))?.name;
}

function isFolder({ root, path: mount }: Config['disk'][number], path: string): boolean {
  const found = statSync(join(root, path.slice(mount.length)), { throwIfNoEntry: false });
  return found?.isDirectory() === true;
}
