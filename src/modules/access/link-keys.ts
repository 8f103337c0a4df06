import { LoadedFile } from '../../core/config/loaded-file.ts';
import { makeLinkKey, parseSecretsKeys } from '../../core/config/secrets-keys.ts';
import { type Log, reasonOf } from '../../core/report/log.ts';
import { KIB } from '../../core/values/units.ts';
import type { LinkKeys } from './signed-links.ts';

/** The largest file of keys that sign links. */
const linkKeysBytesMax = 64 * KIB;

/** The keys of a file as it is now. */
export interface LinkKeyFile {
  /** Looks for a change of the file; undefined if that was done a moment ago. Never rejects. */
  prepare(): Promise<void> | undefined;
  /** None while the file cannot be read. */
  keys(): LinkKeys;
}

/** Opens a `link_key_file`. */
export function openLinkKeys(
  file: string,
  { now, log }: { readonly now: () => number; readonly log: Log },
): LinkKeyFile {
  let isReadable = false;
  const loaded = new LoadedFile<LinkKeys>({
    ...{ file, bytesMax: linkKeysBytesMax, now },
    read: (bytes) => {
      const parsed = parseSecretsKeys(bytes.toString(), makeLinkKey);
      if ('refused' in parsed) throw new Error(`it ${parsed.refused}`);
      isReadable = true;
      return parsed.keys.map((key) => key.bytes);
    },
    failed: (error) => {
      isReadable = false;
      const reason = reasonOf(error);
      log.error({ file, reason }, 'the keys of signed links cannot be read: no link is valid');
    },
  });
  return {
    prepare: () => loaded.prepare(),
    keys: () => (isReadable ? (loaded.value ?? []) : []),
  };
}
