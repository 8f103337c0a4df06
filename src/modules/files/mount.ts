import { createHash } from 'node:crypto';
import type { DiskMount } from '../../core/config/config.ts';
import { undefinedIfForbidden } from '../../core/http/content/file-errors.ts';
import {
  type FieldList,
  type Reply,
  fieldLines,
  withVary,
  withoutFields,
} from '../../core/http/reply.ts';
import { preferredType } from '../../core/http/representation/negotiation.ts';
import { type ContentRequest, isRead } from '../../core/http/request.ts';
import type { MountLoss } from '../../core/pipeline/explanation.ts';
import type { ReplyOrPromise } from '../../core/pipeline/source.ts';
import { encodePath } from '../../core/values/path.ts';
import { forbidsTransform } from '../compression/compressed-reply.ts';
import type { Compressors } from '../compression/compressors.ts';
import { cachedContent } from './cached-file.ts';
import { type ErrorPageFile, createErrorPages } from './error-pages.ts';
import type { DiskCaches } from './file-cache.ts';
import { fieldsByVariant } from './file-content.ts';
import { type FileSender, createFileSender } from './file-sender.ts';
import { listingPage, listingPolicy } from './listing-page.ts';
import { canList, readListing } from './listing.ts';
import {
  type MountLookup,
  type MountPath,
  type MountRequest,
  fallbackPath,
  fileCacheKey,
  lookUpInMount,
  mountMismatch,
  redirectPath,
  resolveMountPath,
} from './mount-path.ts';
import { type LoadedContent, type MountReplies, createMountReplies } from './mount-replies.ts';
import { locateFile, precompressedNotes } from './precompressed.ts';

const policyName = 'content-security-policy';

const noFile: MountExplanation = { loss: 'no_file' };

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

/** The status of a reply to a GET without preconditions and ranges, or why there is none. */
export type MountExplanation =
  | { readonly status: number; readonly notes?: readonly string[] }
  | { readonly loss: MountLoss };

/** Explains what a mount answers, by the same functions that answer; reads no content. */
interface MountExplainer {
  /** Explains Mount.respond; fails as it does. */
  explain(request: MountRequest): MountExplanation;
  /** Explains Mount.fallback; fails as it does. */
  explainFallback(request: MountRequest): MountExplanation;
}

/** Creates the explainer of a mount, which uses the same caches as its replies. */
function createMountExplainer(
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

/** The media types in which a listing is available. */
type ListingType = 'text/html' | 'application/json';

/** The media type that an Accept field prefers (RFC 9110 §12.5.1); HTML without a preference. */
function listingType(accept: string | undefined): ListingType {
  const types: readonly ListingType[] = ['text/html', 'application/json'];
  return preferredType(accept, types) === 'application/json' ? 'application/json' : 'text/html';
}

/** The key under which a folder's listing is cached, in the media type that a request prefers. */
function listingCacheKey(mount: DiskMount, { path, fields }: MountRequest): string {
  return fileCacheKey(mount, path, listingType(fields.accept));
}

/** The headers of a mount for its HTML listings, which have a policy of their own. */
function pageHeaders({ headers }: Pick<DiskMount, 'headers'>): FieldList {
  return withoutFields(headers, policyName);
}

/**
 * Reads the listing of a folder below the root as HTML or JSON; undefined if there is no such
 * folder. Its entity tag is a hash of its bytes. Fails as readListing does.
 */
async function loadListingContent(
  mount: DiskMount,
  folder: { readonly relativePath: string; readonly path: string },
  { type, fields }: { readonly type: ListingType; readonly fields: FieldList },
): Promise<LoadedContent | undefined> {
  const listing = await readListing(mount, folder);
  if (listing === undefined) return undefined;
  const html = type === 'text/html';
  const mountPolicy = fieldLines(mount.headers, policyName).join(', ');
  const bytes = Buffer.from(html ? listingPage(listing, mount.path) : JSON.stringify(listing));
  const etag = createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
  return {
    representation: {
      status: 200,
      contentType: html ? 'text/html; charset=utf-8' : 'application/json',
      etag: `"${etag}"`,
      lastModifiedMs: undefined,
      fields: [
        ...fields,
        'Vary',
        'Accept',
        ...(html ? ['Content-Security-Policy', listingPolicy(mountPolicy)] : []),
      ],
      bytesLength: bytes.length,
    },
    bytes,
    version: undefined,
  };
}
