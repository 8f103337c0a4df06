import type { SharedFilesState } from '../../core/log/shared/shared-log.ts';
import type { Store } from '../../core/log/store.ts';
import { assetsInUse } from '../assets/asset-keeper.ts';
import type { ClusterFiles } from './status.ts';

/** Names of assets without a file that `waymark cluster status` shows; it counts the others. */
const missingFilesShownMax = 10;

/** The files of a cluster, as `waymark cluster status` shows them. */
export interface FilesReport extends SharedFilesState {
  /** How many files are there as a whole, and of how many a part. */
  readonly whole: number;
  readonly incomplete: number;
  /**
   * Files of assets of this data folder that the cluster does not have; null if the folder is no
   * part of it.
   */
  readonly missing: MissingFilesOfAssets | null;
}

interface MissingFilesOfAssets {
  readonly count: number;
  /** The names of some assets that have them. */
  readonly names: readonly string[];
}

/** Compares the files of a cluster with the assets of a data folder, which is a part of it. */
export async function filesReport(
  found: ClusterFiles | undefined,
  store: Store | undefined,
): Promise<FilesReport | null> {
  if (found === undefined) return null;
  const whole = new Set(found.files.filter(({ isWhole }) => isWhole).map(({ sha256 }) => sha256));
  return {
    ...found.state,
    whole: whole.size,
    incomplete: found.files.length - whole.size,
    missing: store === undefined ? null : await missingIn(whole, store),
  };
}

async function missingIn(whole: ReadonlySet<string>, store: Store): Promise<MissingFilesOfAssets> {
  const missing = new Map<string, string>();
  for await (const { name, sha256 } of assetsInUse(store)) {
    if (!whole.has(sha256)) missing.set(sha256, name);
  }
  return { count: missing.size, names: [...missing.values()].slice(0, missingFilesShownMax) };
}

/** The sentences for a person. */
export function filesText(report: FilesReport | null): readonly string[] {
  if (report === null) return ['The cluster has no files of assets yet.'];
  const { stream, whole, incomplete, messages, bytes, copies, missing, problem } = report;
  const files = `${whole} whole ${whole === 1 ? 'file' : 'files'} of assets`;
  const servers = copies === 1 ? 'one server' : `${copies} servers`;
  return [
    `The stream ${stream} has ${files}, in ${messages} messages, ${bytes} bytes, on ${servers}.`,
    ...(problem === undefined ? [] : [problem]),
    ...(incomplete === 0
      ? []
      : [`Of ${incomplete} more it has a part: an upload goes on, or has ended early.`]),
    ...(missing === null || missing.count === 0 ? [] : [missingText(missing)]),
  ];
}

function missingText({ count, names }: MissingFilesOfAssets): string {
  const more = count > names.length ? `, and ${count - names.length} more` : '';
  const what = count === 1 ? 'the file of' : `the files of ${count} assets:`;
  const one = count === 1 ? 'it' : 'one';
  return (
    `It lacks ${what} ${names.join(', ')}${more}. A machine that has ${one} stores it there when ` +
    'it starts, and every hour; `waymark check --data` says what a machine has.'
  );
}
