import type { AssetFiles } from './asset-files.ts';
import { assetsInUse } from './asset-keeper.ts';

/** What a check of the files has found. */
interface CheckedFiles {
  /** The number of files that assets refer to. */
  readonly used: number;
  /** Files that no asset refers to; they go after the retention. */
  readonly unused: number;
  /** What is wrong with the file of an asset, a sentence each. */
  readonly problems: readonly string[];
}

/** Reads the files of all assets, live and in open drafts, and compares them with their hashes. */
export async function checkAssetFiles(
  files: AssetFiles,
  store: Parameters<typeof assetsInUse>[0],
): Promise<CheckedFiles> {
  const sizes = new Map<string, number>();
  for await (const { sha256, bytes } of files.list()) sizes.set(sha256, bytes);
  const [all, problems] = [sizes.size, new Map<string, string>()];
  const sound = new Set<string>();
  for await (const { name, sha256, bytes } of assetsInUse(store)) {
    if (sound.has(sha256)) continue;
    const size = sizes.get(sha256);
    const isSound = size === bytes && (await files.isSound(sha256).catch(() => false));
    if (isSound) sound.add(sha256);
    else {
      const what = size === undefined ? 'missing' : 'damaged';
      problems.set(`${name} ${sha256}`, `the file of ${name} (${sha256}) is ${what}`);
    }
  }
  const named = new Set([...problems.keys()].map((key) => key.split(' ').at(-1) ?? ''));
  const broken = [...named].filter((sha256) => sizes.has(sha256)).length;
  return { used: sound.size, unused: all - sound.size - broken, problems: [...problems.values()] };
}
