import type { Config } from '../../core/config/config.ts';
import { readText } from '../../core/config/files.ts';
import { LoadedFile } from '../../core/config/loaded-file.ts';
import { type Log, reasonOf } from '../../core/report/log.ts';
import { MIB } from '../../core/values/units.ts';
import { type PasswordHash, type PasswordUsers, parsePasswordFile } from './password-hash.ts';

/** The largest password file. */
const passwordFileBytesMax = 4 * MIB;

/** The users of a password file as it is now. */
export interface PasswordFile {
  /** Looks for a change of the file; undefined if that was done a moment ago. Never rejects. */
  prepare(): Promise<void> | undefined;
  /** The hashes by name; none while the file cannot be read. */
  hashes(): ReadonlyMap<string, PasswordHash>;
}

/** Opens a password file. The log names its broken lines, once for each version of the file. */
export function openPasswordFile(
  file: string,
  { now, log }: { readonly now: () => number; readonly log: Log },
): PasswordFile {
  let isReadable = false;
  const loaded = new LoadedFile<PasswordUsers>({
    ...{ file, bytesMax: passwordFileBytesMax, now },
    read: (bytes) => {
      const users = parsePasswordFile(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
      isReadable = true;
      for (const problem of users.problems) log.warn({ file }, `password file: ${problem}`);
      return users;
    },
    failed: (error) => {
      isReadable = false;
      const reason = reasonOf(error);
      log.error({ file, reason }, 'the password file cannot be read: nobody gets in by it');
    },
  });
  return {
    prepare: () => loaded.prepare(),
    hashes: () => (isReadable ? (loaded.value?.hashes ?? nobody) : nobody),
  };
}

/** What is wrong with the password files of a configuration, a sentence each. */
export async function passwordFileWarnings({
  access,
}: Pick<Config, 'access'>): Promise<readonly string[]> {
  const files = [...new Set(access.flatMap(({ passwordFile }) => passwordFile ?? []))];
  const warnings = files.map(async (file) => {
    const read = await readText(file, { bytesMax: passwordFileBytesMax });
    if ('refused' in read) return [`${file} ${read.refused}: nobody gets in by it.`];
    return parsePasswordFile(read.text).problems.map((problem) => `${file}: ${problem}.`);
  });
  return (await Promise.all(warnings)).flat();
}

const nobody: ReadonlyMap<string, PasswordHash> = new Map();
