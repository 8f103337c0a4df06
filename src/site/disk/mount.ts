import type { DiskMount } from '../../config/config.ts';
import type { Reply } from '../../http/reply.ts';
import type { ContentRequest } from '../../http/request.ts';
import { createFiles, type Answer } from './files.ts';
import { listingType, loadListing } from './listing-content.ts';
import { placeBelow, type Place } from './place.ts';
import { locate, locateFile, type Located } from './regular-file.ts';
import { createReplies, type Held } from './replies.ts';
import type { Shelf } from './shelf.ts';

/** One folder of the disk that answers a part of the site. */
export interface Mount {
  /**
   * The answer where the mount covers the request and has it, else undefined; fails as Disk.respond
   * does.
   */
  respond(request: ContentRequest): Answer;
  /**
   * The fallback file where the mount covers the request and has one; fails as Disk.respond does.
   */
  fallback(request: ContentRequest): Answer;
}

/** Makes a mount that keeps its small files and listings on a shelf shared with other mounts. */
export function createMount(
  mount: DiskMount,
  { shelf, now }: { readonly shelf: Shelf<Held>; readonly now: () => number },
): Mount {
  const replies = createReplies(mount);
  const fields = mount.cacheControl === undefined ? [] : ['Cache-Control', mount.cacheControl];
  const files = createFiles(mount, { shelf, replies, facts: { fields, now } });
  const fallbackFile = fallbackBelow(mount);

  function findIndex(below: string): Located | undefined {
    for (const name of mount.index) {
      const file = locateFile(mount, below === '' ? name : `${below}/${name}`);
      if (file !== undefined) return file;
    }
    return undefined;
  }

  async function sendListing(below: string, request: ContentRequest): Promise<Reply | undefined> {
    const type = listingType(request.fields.accept);
    const { path } = request;
    const key = keyOf(mount, path, type);
    const load = async () => {
      const listing = await loadListing(mount, { below, path, type, fields });
      return listing && replies.hold(listing);
    };
    const held = shelf.fresh(key) ?? (await shelf.load(key, load));
    return held && replies.fromHeld(held, request);
  }

  function respondAt({ below, slash }: Place, key: string, request: ContentRequest): Answer {
    const located = locate(mount, below);
    if (located?.stats.isFile() === true && !slash) {
      return files.send(located, key, request);
    }
    if (located?.stats.isDirectory() === true) {
      const index = findIndex(below);
      if (!slash) return index || mount.listing ? replies.toDirectory(request) : undefined;
      if (index !== undefined) return files.send(index, key, request);
      if (mount.listing) return sendListing(below, request);
    }
    shelf.forget(key);
    return undefined;
  }

  return {
    respond(request) {
      if (!covers(mount, request)) return undefined;
      const key = keyOf(mount, request.path);
      const held = shelf.fresh(key);
      if (held !== undefined) return replies.fromHeld(held, request);
      const place = placeBelow(mount, request.path);
      return place && respondAt(place, key, request);
    },
    fallback(request) {
      if (fallbackFile === undefined || !covers(mount, request)) return undefined;
      const key = keyOf(mount, fallbackFile, 'fallback');
      const held = shelf.fresh(key);
      if (held !== undefined) return replies.fromHeld(held, request);
      const file = locateFile(mount, fallbackFile);
      return file && files.send(file, key, request);
    },
  };
}

/**
 * The shelf's key of what a mount says to a path, in a form of its own or not; no path and no name
 * holds a NUL.
 */
function keyOf({ name }: DiskMount, path: string, form = ''): string {
  return `${name}\0${path}\0${form}`;
}

/**
 * Whether a mount is to be asked at all; a path that is the mount's but for the final slash is the
 * root's.
 */
function covers({ origin, path: prefix }: DiskMount, request: ContentRequest): boolean {
  const { method, path } = request;
  if (method !== 'GET' && method !== 'HEAD') return false;
  if (origin !== '*' && origin !== request.origin) return false;
  return path.startsWith(prefix) || (path.length === prefix.length - 1 && prefix.startsWith(path));
}

function fallbackBelow({ fallback }: DiskMount): string | undefined {
  if (fallback === undefined) return undefined;
  return placeBelow({ path: '/', dotfiles: 'allow' }, `/${fallback.replace(/^\/+/, '')}`)?.below;
}
