import { closeSync } from 'node:fs';
import type { DiskMount } from '../../core/config/config.ts';
import type { Reply } from '../../core/http/reply.ts';
import type { ContentRequest } from '../../core/http/request.ts';
import type { ReplyOrPromise } from '../../core/pipeline/source.ts';
import { Failure } from '../../core/values/failure.ts';
import { withCodings } from '../compression/compressed-reply.ts';
import {
  type CachedFile,
  type FileParts,
  chooseRepresentation,
  isInMemory,
  loadCachedFile,
  versionOfAll,
} from './cached-file.ts';
import type { FileCache } from './file-cache.ts';
import {
  type FileToSend,
  fitsInMemory,
  isCompressedFile,
  representationOf,
} from './file-content.ts';
import { diskReadAttemptsMax } from './limits.ts';
import {
  type LocatedFile,
  type OpenFile,
  findPrecompressed,
  locateFile,
  openLocated,
} from './precompressed.ts';

/**
 * Sends the files of one mount: small ones from memory, large ones from the disk as fast as the
 * client reads.
 */
export interface FileSender {
  /**
   * The reply with a file that was located just now, in the best coding for the request. Caches
   * small files under the key.
   */
  send(located: LocatedFile, key: string, request: ContentRequest): ReplyOrPromise;
  /** Whether send could send the file; opens it but reads nothing. Fails as send does. */
  canSend(located: LocatedFile, key: string): boolean;
}

/** Creates the sender of a mount's files. */
export function createFileSender(parts: FileParts, cache: FileCache<CachedFile>): FileSender {
  const { mount, replies, options, compressors } = parts;

  function sendFromDisk(
    located: LocatedFile,
    file: FileToSend,
    request: ContentRequest,
  ): Reply | undefined {
    const opened = openAgain(mount, located);
    if (opened === undefined) return undefined;
    // The validators describe the open file, not the one located before, which may be gone.
    const representation = representationOf(file, { stats: opened.stats, ...options });
    return replies.fromFile(opened, representation, request);
  }

  function sendCached(
    cached: CachedFile,
    located: LocatedFile,
    request: ContentRequest,
  ): ReplyOrPromise {
    const { plain, precompressed } = cached;
    const name = located.relativePath;
    const chosen = chooseRepresentation(cached, request.fields);
    if (chosen !== undefined && isInMemory(chosen)) return replies.fromMemory(chosen, request);
    if (chosen !== undefined) {
      const { file, coding } = chosen;
      const coded = undefinedIfFailure(() =>
        sendFromDisk(file, { name, variant: coding }, request),
      );
      if (coded !== undefined) return coded;
    }
    if (plain !== undefined) return replies.fromMemory(plain, request);
    if (precompressed !== undefined || !isCompressedFile(mount, name)) {
      const variant = precompressed === undefined ? 'only' : 'identity';
      return sendFromDisk(located, { name, variant }, request);
    }
    const reply = sendFromDisk(located, { name, variant: 'identity' }, request);
    return reply && withCodings(reply, request, compressors.responses);
  }

  return {
    send(located, key, request) {
      const precompressed = findPrecompressed(mount, located);
      const cached = cache.stale(key);
      if (cached?.version === versionOfAll(located, precompressed)) {
        cache.confirm(key, cached);
        return sendCached(cached, located, request);
      }
      // A large file without precompressed files leaves nothing to cache.
      const file = { name: located.relativePath, variant: 'only' } as const;
      if (precompressed !== undefined || fitsInMemory(mount, located.stats, file)) {
        return cache
          .load(key, () =>
            loadCachedFile(parts, { file: located, precompressed, previous: cached }),
          )
          .then((loaded) => sendCached(loaded ?? uncached, located, request));
      }
      cache.delete(key);
      return sendCached(uncached, located, request);
    },
    canSend(located, key) {
      const cached = cache.stale(key);
      const version = versionOfAll(located, findPrecompressed(mount, located));
      if (cached?.version === version && cached.plain !== undefined) return true;
      const opened = openAgain(mount, located);
      if (opened !== undefined) closeSync(opened.descriptor);
      return opened !== undefined;
    },
  };
}

/** A file that is sent from the disk, without precompressed files. */
const uncached: CachedFile = { plain: undefined, precompressed: undefined, version: undefined };

/** A precompressed file that cannot be opened is no failure: the original can still be sent. */
function undefinedIfFailure<T>(open: () => T): T | undefined {
  try {
    return open();
  } catch (thrown) {
    if (thrown instanceof Failure) return undefined;
    throw thrown;
  }
}

/** Opens a located file, or the one that has replaced it; undefined if it is gone. */
function openAgain(mount: DiskMount, found: LocatedFile): OpenFile | undefined {
  let located: LocatedFile | undefined = found;
  for (let attempt = 0; attempt < diskReadAttemptsMax; attempt += 1) {
    if (located === undefined) return undefined;
    const opened = openLocated(located);
    if (opened !== undefined) return opened;
    located = locateFile(mount, found.relativePath);
  }
  throw new Failure('unavailable', 'This file is being replaced; try again in a moment.', {
    retryAfterSeconds: 1,
  });
}
