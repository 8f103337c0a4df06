import { isDeepStrictEqual } from 'node:util';
import { settingsAt, withSettings } from './assemble.ts';
import type { Config } from './config.ts';
import { configFieldName } from './ini-key.ts';
import type { IniSection } from './ini-section.ts';

/** Keys of a section that need a restart, with their names in the configuration. */
function fixedKeys({ keys }: IniSection): readonly (readonly [key: string, field: string])[] {
  return Object.entries(keys).flatMap(([name, key]) =>
    key.restart === true ? [[name, configFieldName(name, key)] as const] : [],
  );
}

/**
 * The settings that differ between two configurations but need a restart
 * (docs/design/configuration.md#reloading), as `[section] key`: those whose keys say so.
 */
export function restartNeeded(before: Config, after: Config): string[] {
  return after.sections.flatMap((section) => {
    const { header, place } = section;
    const further = section.restartNeeded?.(before, after);
    if (further !== undefined) return further;
    if (place === undefined || section.isFixed?.(before, after) === false) return [];
    const [old, recent] = [settingsAt(before, place), settingsAt(after, place)] as const;
    return fixedKeys(section).flatMap(([name, field]) => {
      const isSame = isDeepStrictEqual(Reflect.get(old, field), Reflect.get(recent, field));
      return isSame ? [] : [`[${header}] ${name}`];
    });
  });
}

/**
 * The configuration in use after a reload: settings that need a restart keep their old values, with
 * which the next reload is compared.
 */
export function configAfterReload(before: Config, after: Config): Config {
  let next = after;
  for (const section of after.sections) {
    const { place } = section;
    if (place === undefined) continue;
    const kept = section.afterReload?.(before, after) ?? keptSettings(section, before, after);
    if (kept !== undefined) next = withSettings(next, place, kept);
  }
  return next;
}

/** The settings of a section with the old values of keys that need a restart. */
function keptSettings(section: IniSection, before: Config, after: Config): object | undefined {
  const { place = '' } = section;
  const fields = fixedKeys(section).map(([, field]) => field);
  if (fields.length === 0 || section.isFixed?.(before, after) === false) return undefined;
  const old = settingsAt(before, place);
  const kept = fields.map((field) => [field, Reflect.get(old, field)] as const);
  return { ...settingsAt(after, place), ...Object.fromEntries(kept) };
}
