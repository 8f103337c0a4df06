import type { DiskMount } from '../config/config.ts';
import type { FieldList, Reply } from '../http/reply.ts';
import { isRead, type ContentRequest } from '../http/request.ts';
import {
  errorPagesBelow,
  fallbackBelow,
  notCovered,
  placeBelow,
  shelfKey,
  type Place,
} from './mount-path.ts';
import { fileFields } from './file-content.ts';
import type { Answer } from '../rules/source.ts';
import { createFiles } from './file-sender.ts';
import { findAt, locateFile } from './find-file.ts';
import { listingKey, listingType, loadListing, pageHeaders } from './listing-content.ts';
import { createLooks, type Looks } from './explain.ts';
import type { DiskMemory } from './file-cache.ts';
import { createReplies, type Replies } from './mount-replies.ts';
import { heldOf } from './cached-file.ts';

/** One folder of the disk that answers a part of the site. */
export interface Mount extends Looks, Pick<DiskMount, 'name' | 'origin' | 'path'> {
  readonly hasFallback: boolean;
  /**
   * The answer where the mount covers the request and has it, else undefined; fails as Disk.respond
   * does.
   */
  respond(request: ContentRequest): Answer;
  /**
   * The fallback file where the mount covers the request and has one; fails as Disk.respond does.
   */
  fallback(request: ContentRequest): Answer;
  /**
   * The mount's own page for a status, with 200, where the mount covers the request and has one;
   * fails as Disk.respond does.
   */
  errorPage(status: number, request: ContentRequest): Answer;
}

/** Makes a mount; `now` is in milliseconds. */
export function createMount(
  mount: DiskMount,
  { shelf, missing, now }: DiskMemory & { readonly now: () => number },
): Mount {
  const { name, origin, path } = mount;
  const replies = createReplies(mount);
  const said = mount.cacheControl === undefined ? [] : ['Cache-Control', mount.cacheControl];
  const facts = { fields: fileFields(said), now };
  const files = createFiles({ mount, replies, facts }, shelf);
  const fallbackFile = fallbackBelow(mount);
  const sendListing = createListings(mount, { shelf, replies, said });

  function respondAt(place: Place, key: string, request: ContentRequest): Answer {
    const finding = findAt(mount, place);
    if (typeof finding === 'object') return files.send(finding, key, request);
    if (finding === 'slash') return replies.toDirectory(request);
    if (finding === 'listing') return sendListing(place.below, request);
    shelf.forget(key);
    missing.note(key, finding);
    return undefined;
  }

  return {
    name,
    origin,
    path,
    hasFallback: fallbackFile !== undefined,
    respond(request) {
      if (!isRead(request.method) || notCovered(mount, request) !== undefined) return undefined;
      const key = shelfKey(mount, request.path);
      const held = heldOf(shelf.fresh(key), request.fields);
      if (held !== undefined) return replies.fromHeld(held, request);
      if (missing.at(key) !== undefined) return undefined;
      const place = placeBelow(mount, request.path);
      return place && respondAt(place, key, request);
    },
    fallback(request) {
      if (fallbackFile === undefined || !isRead(request.method)) return undefined;
      if (notCovered(mount, request) !== undefined) return undefined;
      const key = shelfKey(mount, fallbackFile, 'fallback');
      const held = heldOf(shelf.fresh(key), request.fields);
      if (held !== undefined) return replies.fromHeld(held, request);
      const file = locateFile(mount, fallbackFile);
      return file && files.send(file, key, request);
    },
    errorPage(status, request) {
      if (notCovered(mount, request) !== undefined) return undefined;
      for (const page of errorPagesBelow(mount, status)) {
        const key = shelfKey(mount, page, 'error');
        const held = heldOf(shelf.fresh(key), request.fields);
        if (held !== undefined) return replies.fromHeld(held, request);
        const file = locateFile(mount, page);
        if (file !== undefined) return files.send(file, key, request);
      }
      return undefined;
    },
    ...createLooks(mount, { shelf, missing, files }),
  };
}

/** The listings of a mount; `said` is what all its answers say. */
function createListings(
  mount: DiskMount,
  {
    shelf,
    replies,
    said,
  }: Pick<DiskMemory, 'shelf'> & {
    readonly replies: Replies;
    readonly said: FieldList;
  },
): (below: string, request: ContentRequest) => Promise<Reply | undefined> {
  const headers = pageHeaders(mount);
  const forms = {
    'application/json': replies,
    'text/html': createReplies({ ...mount, headers }),
  };
  return async (below, request) => {
    const key = listingKey(mount, request);
    const type = listingType(request.fields.accept);
    const load = async () => {
      const listing = await loadListing(mount, { below, path: request.path, type, fields: said });
      if (listing === undefined) return undefined;
      return { plain: forms[type].hold(listing), beside: undefined, identity: undefined };
    };
    const { plain } = shelf.fresh(key) ?? (await shelf.load(key, load)) ?? {};
    return plain && forms[type].fromHeld(plain, request);
  };
}
