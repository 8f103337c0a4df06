import type { DiskMount } from '../../core/config/config.ts';
import type { MountLoss } from '../../core/pipeline/explanation.ts';
import { encodePath } from '../../core/values/path.ts';
import { cachedContent } from './cached-file.ts';
import type { DiskCaches } from './file-cache.ts';
import { undefinedIfForbidden } from '../../core/http/content/file-errors.ts';
import type { FileSender } from './file-sender.ts';
import { locateFile } from './find-file.ts';
import { listingCacheKey } from './listing-content.ts';
import { canList } from './listing.ts';
import { lookUpInMount, redirectPath, type MountLookup } from './mount-lookup.ts';
import {
  fallbackPath,
  fileCacheKey,
  mountMismatch,
  resolveMountPath,
  type MountPath,
  type MountRequest,
} from './mount-path.ts';
import { precompressedNotes } from './precompressed.ts';

/** The status of a reply to a GET without preconditions and ranges, or why there is none. */
export type MountExplanation =
  | { readonly status: number; readonly notes?: readonly string[] }
  | { readonly loss: MountLoss };

/** Explains what a mount answers, by the same functions that answer; reads no content. */
export interface MountExplainer {
  /** Explains Mount.respond; fails as it does. */
  explain(request: MountRequest): MountExplanation;
  /** Explains Mount.fallback; fails as it does. */
  explainFallback(request: MountRequest): MountExplanation;
}

const noFile: MountExplanation = { loss: 'no_file' };

/** Creates the explainer of a mount, which uses the same caches as its replies. */
export function createMountExplainer(
  mount: DiskMount,
  { files, notFound, sender }: DiskCaches & { readonly sender: FileSender },
): MountExplainer {
  const fallbackFile = fallbackPath(mount);

  const isCached = (key: string, { fields }: MountRequest): boolean =>
    cachedContent(files.fresh(key), fields) !== undefined;

  /** Explains a file or listing that is sent, with notes on the file's precompressed files. */
  function sent(find: () => MountLookup | undefined): MountExplanation {
    const found = undefinedIfForbidden(find);
    const isFile = typeof found === 'object' && 'stats' in found;
    const notes = isFile ? precompressedNotes(mount, found) : [];
    return { status: 200, ...(notes.length > 0 && { notes }) };
  }

  function explainPath(path: MountPath, key: string, request: MountRequest): MountExplanation {
    const found = lookUpInMount(mount, path);
    if (typeof found === 'object') {
      if ('redirect' in found) {
        const to = encodePath(redirectPath(mount, found, request.path));
        const reason = found.redirect === 'add_slash' ? 'It is a folder' : 'clean_urls';
        return { status: 301, notes: [`${reason}: the server redirects to ${to}.`] };
      }
      return sender.canSend(found, key) ? sent(() => found) : noFile;
    }
    if (found !== 'listing') return { loss: found };
    const canSend =
      isCached(listingCacheKey(mount, request), request) || canList(mount, path.relativePath);
    return canSend ? sent(() => found) : noFile;
  }

  return {
    explain(request) {
      const loss = mountMismatch(mount, request);
      if (loss !== undefined) return { loss };
      const path = resolveMountPath(mount, request.path);
      if (path === undefined) return { loss: 'hidden_name' };
      const key = fileCacheKey(mount, request.path);
      if (isCached(key, request)) return sent(() => lookUpInMount(mount, path));
      const reason = notFound.get(key);
      return reason === undefined ? explainPath(path, key, request) : { loss: reason };
    },
    explainFallback(request) {
      const loss = mountMismatch(mount, request);
      if (loss !== undefined) return { loss };
      if (fallbackFile === undefined) return noFile;
      const find = () => locateFile(mount, fallbackFile);
      const key = fileCacheKey(mount, fallbackFile, 'fallback');
      if (isCached(key, request)) return sent(find);
      const file = find();
      return file !== undefined && sender.canSend(file, key) ? sent(() => file) : noFile;
    },
  };
}
