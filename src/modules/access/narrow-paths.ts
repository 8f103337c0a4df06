import { coversOrigin } from '../../core/values/network/origin-pattern.ts';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { AccessConfig, Config } from '../../core/config/config.ts';
import type { Reads } from '../../core/log/store.ts';
import { storedRules } from '../rules/log/family.ts';

/** Access sections that page rules name and the ini file does not have, in warnings. */
const missingSectionsMax = 100;

/** Page rules of such a section that a warning counts. */
const closedRulesCountedMax = 1_000;

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
    coversOrigin(origin, one.origin) || coversOrigin(one.origin, origin);
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

/**
 * The page rules that are closed to everybody, because the ini file does not have the access
 * section that they name: a sentence for each such section.
 */
export function closedRuleWarnings(
  access: readonly Pick<AccessConfig, 'name'>[],
  reads: Pick<Reads, 'of'>,
): readonly string[] {
  const known = new Set(access.map(({ name }) => name));
  const missing = reads
    .of(storedRules)
    .accessNames(missingSectionsMax + known.size)
    .filter((name) => !known.has(name));
  return missing.map((name) => {
    const ids = reads.of(storedRules).rulesOfAccess(name, closedRulesCountedMax);
    const [id = ''] = ids;
    const { path = '' } = reads.of(storedRules).rule(id)?.rule ?? {};
    const more = ids.length === closedRulesCountedMax ? ' or more' : '';
    const rules = ids.length === 1 ? 'A page rule names' : `${ids.length}${more} page rules name`;
    const closed = ids.length === 1 ? 'it is' : 'they are';
    return (
      `${rules} [access.${name}], which the ini file does not have, so ${closed} closed to ` +
      `everybody: ${ids.length === 1 ? '' : 'one is '}${path} (${id}). Add the section, or edit ` +
      'the access of the rules.'
    );
  });
}
