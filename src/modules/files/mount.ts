import { forbidsTransform } from '../compression/compressed-reply.ts';
import type { Compressors } from '../compression/compressors.ts';
import type { DiskMount } from '../../core/config/config.ts';
import { fieldLines, type FieldList, type Reply } from '../../core/http/reply.ts';
import { isRead, type ContentRequest } from '../../core/http/request.ts';
import { withVary } from '../../core/http/vary.ts';
import type { ReplyOrPromise } from '../../core/pipeline/source.ts';
import { cachedContent } from './cached-file.ts';
import { createErrorPages, type ErrorPageFile } from './error-pages.ts';
import type { DiskCaches } from './file-cache.ts';
import { fieldsByVariant } from './file-content.ts';
import { createFileSender } from './file-sender.ts';
import { locateFile } from './find-file.ts';
import {
  listingCacheKey,
  listingType,
  loadListingContent,
  pageHeaders,
} from './listing-content.ts';
import { createMountExplainer, type MountExplainer } from './mount-explainer.ts';
import {
  fallbackPath,
  fileCacheKey,
  mountMismatch,
  resolveMountPath,
  type MountPath,
} from './mount-path.ts';
import { lookUpInMount, redirectPath } from './mount-lookup.ts';
import { createMountReplies, type MountReplies } from './mount-replies.ts';

/** One folder on disk that serves a part of the site. All methods fail as Disk.respond does. */
export interface Mount extends MountExplainer, Pick<DiskMount, 'name' | 'origin' | 'path'> {
  readonly hasFallback: boolean;
  /** The reply if the mount applies to the request and has the file. */
  respond(request: ContentRequest): ReplyOrPromise;
  /** The fallback file if the mount applies to the request and has one. */
  fallback(request: ContentRequest): ReplyOrPromise;
  /** The error page for a status, sent with 200, if the mount applies and has one. */
  errorPage(status: number, request: ContentRequest): ReplyOrPromise;
}

/** `now` is in milliseconds. */
export interface MountParts {
  readonly compressors: Compressors;
  readonly now: () => number;
}

/** Creates a mount. */
export function createMount(
  configured: DiskMount,
  { files, notFound, compressors, now }: DiskCaches & MountParts,
): Mount {
  const mount = { ...configured, compress: configured.compress && mayTransform(configured) };
  const { name, origin, path } = mount;
  const replies = createMountReplies(mount, compressors.pages);
  const fields = mount.cacheControl === undefined ? [] : ['Cache-Control', mount.cacheControl];
  const options = { fields: fieldsByVariant(fields), types: mount.types, now };
  const sender = createFileSender({ mount, replies, options, compressors }, files);
  const fallbackFile = fallbackPath(mount);
  const findErrorPages = createErrorPages(mount, now);
  const sendListing = createListingSender(mount, { files, replies, fields, compressors });

  function sendCached(key: string, request: ContentRequest): Reply | undefined {
    const content = cachedContent(files.fresh(key), request.fields);
    return content && replies.fromMemory(content, request);
  }

  function sendFromDisk(path: MountPath, key: string, request: ContentRequest): ReplyOrPromise {
    const found = lookUpInMount(mount, path);
    if (typeof found === 'object') {
      return 'redirect' in found
        ? replies.redirect(redirectPath(mount, found, request.path), request)
        : sender.send(found, key, request);
    }
    if (found === 'listing') return sendListing(path.relativePath, request);
    files.delete(key);
    notFound.set(key, found);
    return undefined;
  }

  /** Sends a file that the ini file names, whatever the path of the request is. */
  function sendConfigured(path: string, kind: string, request: ContentRequest): ReplyOrPromise {
    const key = fileCacheKey(mount, path, kind);
    const cached = sendCached(key, request);
    if (cached !== undefined) return cached;
    const file = locateFile(mount, path);
    return file && sender.send(file, key, request);
  }

  return {
    name,
    origin,
    path,
    hasFallback: fallbackFile !== undefined,
    respond(request) {
      if (!isRead(request.method) || mountMismatch(mount, request) !== undefined) return undefined;
      const key = fileCacheKey(mount, request.path);
      const cached = sendCached(key, request);
      if (cached !== undefined) return cached;
      if (notFound.get(key) !== undefined) return undefined;
      const path = resolveMountPath(mount, request.path);
      return path && sendFromDisk(path, key, request);
    },
    fallback(request) {
      const isAsked = isRead(request.method) && mountMismatch(mount, request) === undefined;
      return isAsked && fallbackFile !== undefined
        ? sendConfigured(fallbackFile, 'fallback', request)
        : undefined;
    },
    errorPage: (status, request) =>
      mountMismatch(mount, request) === undefined
        ? firstOf(findErrorPages(status, request), (page) =>
            inLanguage(sendConfigured(page.path, 'error', request), page),
          )
        : undefined,
    ...createMountExplainer(mount, { files, notFound, sender }),
  };
}

/** The page of an error with its language, and with the field that it varies by. */
function inLanguage(
  reply: ReplyOrPromise,
  { lang, variesByLanguage }: ErrorPageFile,
): ReplyOrPromise {
  if (reply === undefined) return undefined;
  const labelled = (one: Reply): Reply => {
    const fields = [...one.fields, ...(lang === undefined ? [] : ['Content-Language', lang])];
    return { ...one, fields: variesByLanguage ? withVary(fields, 'Accept-Language') : fields };
  };
  return reply instanceof Promise ? reply.then((one) => one && labelled(one)) : labelled(reply);
}

/** The first result for a value that has one. */
function firstOf<Value, Result>(
  values: readonly Value[],
  find: (value: Value) => Result | undefined,
): Result | undefined {
  for (const value of values) {
    const found = find(value);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Whether the server may compress what a mount sends: its fields do not say another thing. */
function mayTransform({ cacheControl = '', headers }: DiskMount): boolean {
  const values = [cacheControl, ...fieldLines(headers, 'cache-control')];
  return !values.some(forbidsTransform);
}

/** Sends the listings of a mount's folders with the mount's own fields. */
function createListingSender(
  mount: DiskMount,
  {
    files,
    replies,
    fields,
    compressors,
  }: Pick<DiskCaches, 'files'> & {
    readonly compressors: Compressors;
    readonly replies: MountReplies;
    readonly fields: FieldList;
  },
): (relativePath: string, request: ContentRequest) => Promise<Reply | undefined> {
  const repliesByType = {
    'application/json': replies,
    'text/html': createMountReplies({ ...mount, headers: pageHeaders(mount) }, compressors.pages),
  };
  return async (relativePath, request) => {
    const key = listingCacheKey(mount, request);
    const type = listingType(request.fields.accept);
    const load = async () => {
      const folder = { relativePath, path: request.path };
      const listing = await loadListingContent(mount, folder, { type, fields });
      if (listing === undefined) return undefined;
      const plain = repliesByType[type].prepare(listing, true);
      return { plain, precompressed: undefined, version: undefined };
    };
    const { plain } = files.fresh(key) ?? (await files.load(key, load)) ?? {};
    return plain && repliesByType[type].fromMemory(plain, request);
  };
}
