import { LoadedFile } from '../../core/config/loaded-file.ts';
import { type Log, reasonOf } from '../../core/report/log.ts';
import { Networks, comparableAddress } from '../../core/values/network/networks.ts';
import { MIB } from '../../core/values/units.ts';

/** The largest file of networks, and the broken lines of it that the log names. */
const networkFileBytesMax = 16 * MIB;
const networkLinesNamedMax = 5;

/** The networks of a file as it is now. */
export interface NetworkFile {
  /** Reads the file for the first time; undefined if that was done. Never rejects. */
  ready(): Promise<void> | undefined;
  /**
   * Whether one of its networks has an address. While the file cannot be read, the networks of its
   * last version count; before the first one, every address is in it.
   */
  contains(address: string): boolean;
}

/** Opens a file of networks. The log names its broken lines, once for each version of the file. */
export function openNetworkFile(
  file: string,
  { now, log }: { readonly now: () => number; readonly log: Log },
): NetworkFile {
  const loaded = new LoadedFile<Networks>({
    ...{ file, bytesMax: networkFileBytesMax, now },
    read: (bytes) => {
      const { networks, problem } = parseNetworkFile(bytes.toString());
      if (problem !== undefined) log.warn({ file }, `file of networks: ${problem}`);
      return networks;
    },
    failed: (error) => {
      const state = loaded.value === undefined ? 'everybody is refused' : 'the former one counts';
      log.error({ file, reason: reasonOf(error) }, `the file of networks cannot be read: ${state}`);
    },
  });
  return {
    ready: () => (loaded.value === undefined ? loaded.prepare() : undefined),
    contains(address) {
      void loaded.prepare();
      if (loaded.value === undefined) return true;
      const comparable = comparableAddress(address);
      return comparable !== undefined && loaded.value.contains(comparable);
    },
  };
}

/**
 * Parses a network on each line; `#` and `;` begin a comment. Broken lines are left out, and named
 * in a sentence.
 */
export function parseNetworkFile(text: string): {
  readonly networks: Networks;
  readonly problem: string | undefined;
} {
  const lines = text
    .split('\n')
    .map((line, at) => ({ number: at + 1, network: line.replace(/[#;].*/, '').trim() }))
    .filter(({ network }) => network !== '');
  const { networks, invalid } = Networks.parseValid(lines.map(({ network }) => network));
  if (invalid.length === 0) return { networks, problem: undefined };
  const named = invalid.slice(0, networkLinesNamedMax).map((at) => lines[at]?.number);
  const more = invalid.length > named.length ? ` and ${invalid.length - named.length} more` : '';
  const which = `line ${named.join(', ')}${more}`;
  return { networks, problem: `${which}: write a network such as 10.0.0.0/8; it is left out` };
}
