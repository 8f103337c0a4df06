import type { RecordChange } from '../../core/log/store.ts';
import type { StoredRow } from '../tables/row.ts';
import { setTimeout as delay } from 'node:timers/promises';
import type { Task } from '../../core/background/tasks.ts';
import type { SharedFiles } from '../../core/log/shared/shared-log.ts';
import type { Store } from '../../core/log/store.ts';
import type { Log } from '../../core/report/log.ts';
import { Failure, failureFrom } from '../../core/values/failure.ts';
import type { WaymarkClient } from '../peers/waymark-client.ts';
import type { AssetFiles } from './asset-files.ts';
import { assetsInUse } from './asset-keeper.ts';
import { assetOf, assetTable } from './asset.ts';
import { keepEveryMs } from './limits.ts';

/** How long a visitor waits for a file that this node gets from its centre. */
const missingFileWaitMs = 10_000;

/** How long the centre may be silent while it sends a file. */
const centreSilentMs = 30_000;

interface MissingFilesParts {
  readonly files: Pick<AssetFiles, 'begin' | 'interruptedBytes' | 'open'>;
  readonly origin: FileOrigin;
  readonly log: Log;
}

/**
 * Where a node gets files that it does not have: the content of one, from a byte on or from an
 * earlier one. Rejects with a Failure.
 */
type FileOrigin = (
  sha256: string,
  first: number,
  signal: AbortSignal,
) => Promise<{ readonly first: number; readonly chunks: AsyncIterable<Uint8Array> }>;

/** Gets files from a centre, which knows this node by its key (upload/asset-upload.ts). */
export function fromCentre(
  client: Pick<WaymarkClient, 'download'>,
  apikey: () => Promise<string>,
): FileOrigin {
  return async (sha256, first, signal) =>
    client.download(`asset-file/${sha256}`, { apikey: await apikey(), first }, signal);
}

/** Gets files that the nodes of a cluster share. */
export function fromCluster(shared: Pick<SharedFiles, 'get'>): FileOrigin {
  return async (sha256, first, signal) => {
    const found = await shared.get(sha256, first, signal);
    if (found !== undefined) return found;
    throw new Failure('unavailable', 'The cluster does not have the file of an asset.');
  };
}

/** The files of assets that a node gets from others, each by its hash, and checked by it. */
export interface MissingFiles {
  /** Gets a file; resolves once it is there. Rejects with the failure. */
  get(sha256: string): Promise<void>;
  /** Gets a file for a visitor: resolves to whether it is there, after some seconds at most. */
  getSoon(sha256: string): Promise<boolean>;
}

/** Makes the requests for the files; no file is requested twice at a time. */
export function createMissingFiles(parts: MissingFilesParts): MissingFiles {
  const running = new Map<string, Promise<void>>();
  const get = (sha256: string): Promise<void> => {
    const begun = running.get(sha256);
    if (begun !== undefined) return begun;
    const getting = download(parts, sha256).finally(() => running.delete(sha256));
    running.set(sha256, getting);
    return getting;
  };
  return {
    get,
    async getSoon(sha256) {
      const ended = new AbortController();
      const tooLong = delay(missingFileWaitMs, false, { signal: ended.signal, ref: false });
      const got = get(sha256).then(
        () => true,
        (error: unknown) => {
          parts.log.warn({ err: error }, 'cannot get the file of an asset');
          return false;
        },
      );
      try {
        return await Promise.race([got, tooLong]);
      } finally {
        ended.abort();
        tooLong.catch(() => undefined);
      }
    },
  };
}

async function download({ files, origin }: MissingFilesParts, sha256: string): Promise<void> {
  // What has arrived before an interruption is used; the hash of the whole decides.
  const upload = { owner: 'centre', name: sha256 };
  const first = await files.interruptedBytes(upload);
  const silent = new AbortController();
  const timer = setTimeout(() => {
    silent.abort(new Failure('unavailable', 'The server has stopped to send a file.'));
  }, centreSilentMs);
  try {
    const reply = await origin(sha256, first, silent.signal);
    const writer = await files.begin(upload, reply.first);
    try {
      for await (const chunk of reply.chunks) {
        timer.refresh();
        await writer.write(Buffer.from(chunk));
      }
    } catch (error) {
      await writer.interrupt();
      throw failureFrom(error);
    }
    await writer.finish(sha256);
  } finally {
    clearTimeout(timer);
  }
}

interface FollowerParts {
  readonly files: Pick<AssetFiles, 'list' | 'isSound' | 'share'>;
  readonly missing: Pick<MissingFiles, 'get'>;
  readonly store: Store;
  readonly log: Log;
}

/**
 * Gets the files of all assets of a node, those of new ones as their rows arrive, and looks for all
 * of them every hour: those of a draft's rows come then, or when somebody asks for one. In a
 * cluster, it also gives the others the files that only this node has, such as those of the folder
 * that a cluster begins with.
 */
export function assetFollowing(parts: FollowerParts): Task {
  return {
    name: 'asset_follower',
    title: 'The copying of the files of assets',
    async run(signal, well) {
      while (!signal.aborted) await followAssets(parts, signal, well);
    },
  };
}

/**
 * Gets all that is missing, then what new rows need, for an hour. Rejects at the first failure, of
 * a file only when all others are here.
 */
async function followAssets(
  parts: FollowerParts,
  stop: AbortSignal,
  well: () => void,
): Promise<void> {
  const { files, store, missing } = parts;
  const signal = AbortSignal.any([stop, AbortSignal.timeout(keepEveryMs)]);
  let seq = store.seq();
  const here = new Set<string>();
  for await (const { sha256 } of files.list()) here.add(sha256);
  const shared = await sharedHashes(parts);
  // Also what no asset refers to at present: an undo may bring one back.
  const wanted = new Set(shared);
  let failure: Failure | undefined;
  for await (const { sha256 } of assetsInUse(store)) {
    if (signal.aborted) return;
    wanted.add(sha256);
    if (shared === undefined || shared.has(sha256) || !here.has(sha256)) continue;
    await share(parts, sha256).catch((error: unknown) => (failure ??= failureFrom(error)));
    shared.add(sha256);
  }
  for (const sha256 of wanted) {
    if (signal.aborted) return;
    if (here.has(sha256)) continue;
    // One file that the others have lost does not keep the rest away.
    await missing.get(sha256).catch((error: unknown) => (failure ??= failureFrom(error)));
    here.add(sha256);
  }
  if (failure !== undefined) throw failure;
  well();
  while (!signal.aborted) {
    const slice = await store.changesAfter(['record'], seq, signal);
    for (const { after } of slice.changes as readonly RecordChange<StoredRow>[]) {
      const asset = after?.row.table === assetTable ? assetOf(after) : undefined;
      if (asset === undefined || here.has(asset.sha256)) continue;
      await missing.get(asset.sha256);
      here.add(asset.sha256);
    }
    seq = slice.upTo;
  }
}

/** The hashes of the files that the nodes of a cluster share; undefined without one. */
async function sharedHashes({ store }: FollowerParts): Promise<Set<string> | undefined> {
  const listed = await store.shared?.files.list();
  return listed && new Set(listed.filter((one) => one.isWhole).map(({ sha256 }) => sha256));
}

async function share({ files, store }: FollowerParts, sha256: string): Promise<void> {
  const { shared } = store;
  // A damaged file must not become that of all nodes.
  if (shared === undefined || !(await files.isSound(sha256))) return;
  await files.share(sha256, shared.files);
}
