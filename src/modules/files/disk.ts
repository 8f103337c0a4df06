import type { Config, DiskMount } from '../../core/config/config.ts';
import { plainGetFields, withoutCaching } from '../../core/http/content/content.ts';
import type { Reply } from '../../core/http/reply.ts';
import type { ContentRequest } from '../../core/http/request.ts';
import type { ErrorPages, FailedRequest, ReplyOrPromise } from '../../core/pipeline/source.ts';
import type { CacheUse } from '../../core/report/memory-use.ts';
import { Failure } from '../../core/values/failure.ts';
import { createDiskCaches } from './file-cache.ts';
import { type FolderNames, namesBelow } from './folder-names.ts';
import { type Mount, type MountParts, createMount } from './mount.ts';

/** Serves the files of all mounts (docs/design/requests.md#precedence). */
export interface Disk extends ErrorPages {
  /** In the order in which they are tried. */
  readonly mounts: readonly Mount[];
  /**
   * The reply of the first mount that has the file, without a promise if it is in memory; undefined
   * if no mount has it or the method is neither GET nor HEAD. Fails with `forbidden` for a file
   * that the server may not read, and with `unavailable` when it has too many files open.
   */
  respond(request: ContentRequest): ReplyOrPromise;
  /**
   * The `fallback` file of the first mount that applies and has one, with 200. Fails as respond
   * does.
   */
  fallback(request: ContentRequest): Promise<Reply | undefined>;
  /** The names directly below a path; see namesBelow. */
  namesBelow(
    place: { readonly origin: string; readonly path: string },
    caller: { readonly seesAll: boolean },
  ): Promise<FolderNames>;
  /** The memory that cached files use now. */
  memory(): CacheUse;
  /** Waits for files that are being read, and empties the caches; open requests can still end. */
  close(): Promise<void>;
}

/**
 * The files and folders that no mount serves, wherever its symbolic links lead: those whose keys
 * say so, and the ini file with those that it includes.
 */
export function privatePathsOf({
  privatePaths,
  file,
  includedFiles,
}: Pick<Config, 'privatePaths' | 'file' | 'includedFiles'>): readonly string[] {
  return [...privatePaths, file, ...includedFiles];
}

/** Creates the disk source; `mounts` are tried in their order. */
export function createDisk({
  mounts: configured,
  privatePaths = [],
  ...parts
}: MountParts & {
  readonly mounts: readonly DiskMount[];
  /** See privatePathsOf. */
  readonly privatePaths?: readonly string[];
}): Disk {
  const mounts = configured.map((mount) => ({
    ...mount,
    // A folder that someone serves out of the data folder stays as open as it was.
    privatePaths: privatePaths.filter((one) => !`${mount.root}/`.startsWith(`${one}/`)),
  }));
  const caches = createDiskCaches(parts.now);
  const all = mounts.map((mount) => createMount(mount, { ...caches, ...parts }));
  const withErrorPages = all.filter((_, at) => mounts[at]?.errors !== undefined);

  /** Tries the mounts from an index on, and waits only for one that reads from the disk. */
  function respond(request: ContentRequest, first = 0): ReplyOrPromise {
    for (let at = first; at < all.length; at += 1) {
      const reply = all[at]?.respond(request);
      if (reply instanceof Promise) {
        return reply.then((read) => read ?? respond(request, at + 1));
      }
      if (reply !== undefined) return reply;
    }
    return undefined;
  }

  return {
    mounts: all,
    respond,
    async fallback(request) {
      for (const mount of all) {
        const reply = await mount.fallback(request);
        if (reply !== undefined) return reply;
      }
      return undefined;
    },
    errorPage: async (status, failed) =>
      withErrorPages.length === 0 ? undefined : errorPage(withErrorPages, status, failed),
    namesBelow: (place, caller) => namesBelow(mounts, place, caller),
    memory: () => caches.files.memory('files'),
    close: () => caches.files.close(),
  };
}

/**
 * The error page of the first mount that applies to the request and has one, with the failure's
 * status; undefined if none has. Without validators and Cache-Control: no cache may store the page
 * as the content of the URL. It is reusable for a failure that is.
 */
async function errorPage(
  mounts: readonly Mount[],
  status: number,
  failed: FailedRequest,
): Promise<Reply | undefined> {
  const fields = plainGetFields(failed.fields);
  const { signal } = new AbortController();
  const request = { ...failed, method: 'GET', fields, body: undefined, signal };
  for (const mount of mounts) {
    const page = await undefinedIfFailure(() => mount.errorPage(status, request));
    if (page === undefined) continue;
    const { isReusable } = page;
    return { ...withoutCaching(page), status, ...(isReusable && { isReusable }) };
  }
  return undefined;
}

/** An unreadable error page must not replace the failure that is being reported. */
async function undefinedIfFailure(
  read: () => ReturnType<Mount['errorPage']>,
): Promise<Reply | undefined> {
  try {
    return await read();
  } catch (thrown) {
    if (thrown instanceof Failure) return undefined;
    throw thrown;
  }
}
