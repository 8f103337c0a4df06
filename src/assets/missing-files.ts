import { setTimeout as delay } from 'node:timers/promises';
import { Failure, failureFrom } from '../model/failure.ts';
import type { Log } from '../observability/log.ts';
import type { WaymarkClient } from '../outbound/waymark-client.ts';
import type { Store } from '../store/store.ts';
import { assetOf, assetTable, type Asset } from './asset.ts';
import type { AssetFiles } from './asset-files.ts';
import { assetsInUse } from './asset-keeper.ts';
import { centreSilentMs, missingFilesRetryMs, missingFileWaitMs } from './limits.ts';

interface MissingFilesParts {
  readonly files: Pick<AssetFiles, 'begin' | 'interruptedBytes' | 'open'>;
  readonly client: Pick<WaymarkClient, 'download'>;
  /** The key of this node for its centre. */
  readonly apikey: () => Promise<string>;
  readonly log: Log;
}

/** The files of assets that a node gets from its centre, each by its hash, and checked by it. */
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
          parts.log.warn({ err: error }, 'cannot get the file of an asset from the centre');
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

/** The path of a file by its hash, below `/svc1/`: see server/asset-upload.ts. */
function pathOf(sha256: string): string {
  return `asset-file/${sha256}`;
}

async function download(
  { files, client, apikey }: MissingFilesParts,
  sha256: string,
): Promise<void> {
  // What has arrived before an interruption is used; the hash of the whole decides.
  const upload = `centre ${sha256}`;
  const first = await files.interruptedBytes(upload);
  const silent = new AbortController();
  const timer = setTimeout(() => {
    silent.abort(new Failure('unavailable', 'The centre has stopped to send a file.'));
  }, centreSilentMs);
  try {
    const request = { apikey: await apikey(), first };
    const reply = await client.download(pathOf(sha256), request, silent.signal);
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
  readonly files: Pick<AssetFiles, 'list'>;
  readonly missing: Pick<MissingFiles, 'get'>;
  readonly store: Store;
  readonly log: Log;
}

/** Gets the files of all assets of a node, those of new ones as their rows arrive. */
export class AssetFollower {
  readonly #parts: FollowerParts;
  readonly #stopped = new AbortController();
  #running: Promise<void> = Promise.resolve();
  /** The failure that the log has last; the follower goes on trying. */
  #logged = '';

  constructor(parts: FollowerParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#running = this.#run();
  }

  #isStopped(): boolean {
    return this.#stopped.signal.aborted;
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    const { log } = this.#parts;
    while (!signal.aborted) {
      try {
        await this.#follow();
      } catch (error) {
        const { message } = failureFrom(error);
        if (message !== this.#logged && !this.#isStopped()) {
          log.warn({ err: error }, 'cannot get the files of all assets yet');
        }
        this.#logged = message;
        await delay(missingFilesRetryMs, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  /** Gets all that is missing, then what new rows need. Rejects at the first failure. */
  async #follow(): Promise<void> {
    const { files, store } = this.#parts;
    const { signal } = this.#stopped;
    let seq = store.seq();
    const here = new Set<string>();
    for await (const { sha256 } of files.list()) here.add(sha256);
    let failure: Failure | undefined;
    for await (const asset of assetsInUse(store)) {
      if (signal.aborted) return;
      if (here.has(asset.sha256)) continue;
      // One file that the centre has lost does not keep the others away.
      await this.#get(asset).catch((error: unknown) => (failure ??= failureFrom(error)));
      here.add(asset.sha256);
    }
    if (failure !== undefined) throw failure;
    this.#logged = '';
    while (!signal.aborted) {
      const slice = await store.changesAfter(['record'], seq, signal);
      for (const { after } of slice.changes) {
        const asset = after?.row.table === assetTable ? assetOf(after) : undefined;
        if (asset === undefined || here.has(asset.sha256)) continue;
        await this.#get(asset);
        here.add(asset.sha256);
      }
      seq = slice.upTo;
    }
  }

  async #get({ sha256 }: Asset): Promise<void> {
    await this.#parts.missing.get(sha256);
  }
}
