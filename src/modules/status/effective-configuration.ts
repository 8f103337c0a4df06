import { withoutUsers } from '../../core/values/url-user.ts';
import { readFile } from 'node:fs/promises';
import type { Config } from '../../core/config/config.ts';
import { describeConfig } from '../../core/config/describe.ts';
import { scanIni, type Entry, type ScannedSection } from '../../core/config/scan.ts';
import { sectionKinds } from '../../core/config/ini-section.ts';
import { identifySection } from '../../core/config/section.ts';

/** A key of the configuration in use. */
interface EffectiveKey {
  readonly key: string;
  /** Its values as the ini file would have them; empty for a key without a value. */
  readonly values: readonly string[];
  /** The line of the ini file that sets it; null for a default. */
  readonly line: number | null;
}

/** A section of the configuration in use. */
interface EffectiveSection {
  readonly section: string;
  /** The ini file or included file that has it; null for a section that none has. */
  readonly file: string | null;
  /** Its line there. */
  readonly line: number | null;
  readonly keys: readonly EffectiveKey[];
}

/**
 * The configuration in use with all defaults, and the lines that set it, of the ini file and its
 * included files as they are now. It has no secret: values of variables, which may be passwords,
 * stay `${NAME}`, and secret keys, and a user and password in a URL, are masked. Other
 * secrets are in files, of which it has the names.
 */
export async function effectiveConfig(config: Config): Promise<readonly EffectiveSection[]> {
  const written = new Map<string, ScannedSection & { readonly file: string }>();
  for (const file of [config.file, ...config.includedFiles]) {
    const text = await readFile(file, 'utf8').catch(() => '');
    for (const section of scanIni(text).sections) {
      const { name } = section;
      const before = written.get(name.toLowerCase())?.entries ?? [];
      const entries = [...before, ...section.entries];
      written.set(name.toLowerCase(), { ...section, file, entries });
    }
  }
  const kinds = sectionKinds(config.sections);
  const isSecret = (section: string, key: string): boolean => {
    const found = identifySection(section, kinds);
    const keys = kinds.find(({ header }) => typeof found === 'object' && header === found.header);
    return keys?.keys[key]?.isSecret === true;
  };
  return scanIni(describeConfig(config))
    .sections.filter(({ name }) => name !== 'variables')
    .map(({ name, entries }) => {
      const found = written.get(name.toLowerCase());
      const keys = Map.groupBy(entries, ({ key }) => key);
      return {
        section: name,
        file: found?.file ?? null,
        line: found?.line ?? null,
        keys: [...keys].map(([key, described]) => {
          const lines = (found?.entries ?? []).filter((one) => sameKey(one.key, key));
          // The described text has the sections of included files, and so no `include`.
          const shown = key === 'include' ? config.server.include : valuesOf(described, lines);
          const values = isSecret(name, key) ? shown.map(withoutSecret) : shown;
          return { key, values, line: lines[0]?.line ?? null };
        }),
      };
    });
}

function withoutSecret(text: string): string {
  return /^\$\{\w+\}$/.test(text) ? text : '…';
}

function sameKey(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

/** The values in use; a line with a variable stands for its value, which may be a secret. */
function valuesOf(described: readonly Entry[], lines: readonly Entry[]): readonly string[] {
  const shown = lines.some(({ text }) => text.includes('${')) ? lines : described;
  return shown.flatMap(({ text }) => (text === '' ? [] : [withoutUsers(text)]));
}
