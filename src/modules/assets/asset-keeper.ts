import { viewOfDraft } from '../drafts/log/draft-reads.ts';
import { type Task, atIntervals } from '../../core/background/tasks.ts';
import { eventLoop } from '../../core/fair/turns.ts';
import type { SharedFiles } from '../../core/log/shared/shared-log.ts';
import type { Reads, Store } from '../../core/log/store.ts';
import type { Log } from '../../core/report/log.ts';
import type { AssetFiles } from './asset-files.ts';
import { type Asset, assetOf, assetTable } from './asset.ts';
import { interruptedUploadMs, keepEveryMs } from './limits.ts';
import { storedDrafts } from '../drafts/log/family.ts';
import { storedTables } from '../tables/log/family.ts';

const assetsAtOnce = 1_000;

/** The part of a store that says which files are in use. */
type AssetStore = Pick<Store, 'view' | 'refresh' | 'shared'> & Pick<Reads, 'of'>;

/** The assets of the live site, and those that an open draft adds or changes. */
export async function* assetsInUse(store: AssetStore): AsyncGenerator<Asset, void, undefined> {
  store.refresh();
  const turns = eventLoop.turns('assets');
  for (let after: string | undefined = ''; after !== undefined;) {
    await turns.next();
    const { assets, next } = pieceOf(store, after);
    yield* assets;
    after = next;
  }
  for (const draft of [...store.of(storedDrafts).draftsIn('open')]) {
    const rows = [...store.of(storedDrafts).draftRecords(draft)].filter(
      ({ family }) => family === 'record',
    );
    const reads = store.view(viewOfDraft(draft));
    for (const { id } of rows) {
      if (turns.isOver()) await turns.next();
      const stored = reads.of(storedTables).row(id);
      const asset = stored?.row.table === assetTable ? assetOf(stored) : undefined;
      if (asset !== undefined) yield asset;
    }
  }
}

/** Some assets of the live site after a row, and where the next ones begin. */
function pieceOf(
  store: AssetStore,
  after: string,
): { readonly assets: readonly Asset[]; readonly next: string | undefined } {
  const assets: Asset[] = [];
  let steps = 0;
  for (const { id, stored } of store.of(storedTables).rowsAfter(assetTable, after)) {
    const asset = assetOf(stored);
    if (asset !== undefined) assets.push(asset);
    steps += 1;
    if (steps === assetsAtOnce) return { assets, next: id };
  }
  return { assets, next: undefined };
}

interface KeeperParts {
  readonly files: AssetFiles;
  readonly store: AssetStore;
  /** `[asset] retention`, in milliseconds. */
  readonly retentionMs: () => number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
}

/**
 * Removes files that no asset has referred to for the retention, and what interrupted uploads have
 * left: at the start, and every hour. One process of a data folder does so; in a cluster, also from
 * the files that its nodes share.
 */
export function assetKeeping(parts: KeeperParts): Task {
  return {
    name: 'asset_keeper',
    title: 'The removal of files that no asset refers to',
    run: atIntervals(keepEveryMs, (signal) => keepAssets(parts, signal)),
  };
}

/** Looks through the folder once, until the signal aborts. */
export async function keepAssets(parts: KeeperParts, signal: AbortSignal): Promise<void> {
  const removed = await removeUnused(parts, signal);
  if (removed > 0) parts.log.info({ files: removed }, 'removed files that no asset refers to');
}

async function removeUnused(parts: KeeperParts, signal: AbortSignal): Promise<number> {
  const { files, store, retentionMs, now } = parts;
  await files.clean(now());
  const { shared } = store;
  // An undo at another node may have brought an asset back.
  await shared?.catchUp();
  const awayMs = shared === undefined ? 0 : await awayMsOf(parts);
  const unused = new Map<string, number>();
  for await (const { sha256, usedMs } of files.list()) unused.set(sha256, usedMs);
  for await (const { sha256 } of assetsInUse(store)) {
    if (signal.aborted) return 0;
    const usedMs = unused.get(sha256);
    unused.delete(sha256);
    // From its last use on, an undo can bring the asset back for the whole retention.
    if (usedMs !== undefined && now() - usedMs >= keepEveryMs / 2) {
      await files.touch(sha256, now());
    }
  }
  let removed = 0;
  const beforeMs = now() - retentionMs();
  for (const [sha256, usedMs] of unused) {
    if (signal.aborted) return removed;
    // While this node was stopped, the others could use what it does not.
    if (awayMs > 0) await files.touch(sha256, Math.min(now(), usedMs + awayMs));
    if (usedMs + awayMs >= beforeMs) continue;
    await shared?.files.remove(sha256, beforeMs);
    if (await files.remove(sha256, beforeMs)) removed += 1;
  }
  if (shared !== undefined) await removeParts(parts, shared.files);
  return removed;
}

/** How long this node was stopped since it looked through the folder last, in milliseconds. */
async function awayMsOf({ files, now }: KeeperParts): Promise<number> {
  const before = await files.lookedThroughMs();
  await files.noteLookedThrough(now());
  const sinceMs = now() - (before ?? now());
  return sinceMs > 2 * keepEveryMs ? sinceMs : 0;
}

/** Removes what nodes have left in the cluster that ended during an upload. */
async function removeParts({ now }: KeeperParts, shared: SharedFiles): Promise<void> {
  const beforeMs = now() - interruptedUploadMs;
  for (const { sha256, isWhole } of await shared.list()) {
    if (!isWhole) await shared.remove(sha256, beforeMs);
  }
}

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
