import { closeSync } from 'node:fs';
import type { DiskMount } from '../../config/config.ts';
import type { Reply } from '../../http/reply.ts';
import type { ContentRequest } from '../../http/request.ts';
import { Failure } from '../../model/failure.ts';
import { diskAttemptsMax } from '../../model/limits.ts';
import { isHoldable, loadFile, representFile, type FileFacts } from './file-content.ts';
import {
  identityOf,
  locateFile,
  openLocated,
  type Located,
  type OpenFile,
} from './regular-file.ts';
import type { Held, Replies } from './replies.ts';
import type { Shelf } from './shelf.ts';

/** An answer, at once or after bytes were read; undefined where there is nothing. */
export type Answer = Reply | undefined | Promise<Reply | undefined>;

/**
 * Sends the files of one mount: small ones from memory, others from the disk as the client takes
 * them.
 */
export interface Files {
  /**
   * The answer for a regular file located just now, kept on the shelf under the key if it is small.
   */
  send(located: Located, key: string, request: ContentRequest): Answer;
  /** Whether send would have the file's bytes; opens it, but reads nothing. Fails as send does. */
  canSend(located: Located, key: string): boolean;
}

/** Makes the sender of a mount's files. */
export function createFiles(
  mount: DiskMount,
  {
    shelf,
    replies,
    facts,
  }: {
    readonly shelf: Shelf<Held>;
    readonly replies: Replies;
    readonly facts: FileFacts;
  },
): Files {
  function sendOpened(found: Located, request: ContentRequest): Reply | undefined {
    const opened = openFound(mount, found);
    if (opened === undefined) return undefined;
    // Made from the open file itself, so that its validators are never another file's.
    const representation = representFile(found.below, { stats: opened.stats, ...facts });
    return replies.fromOpen(opened, representation, request);
  }

  async function sendLoaded(
    below: string,
    key: string,
    request: ContentRequest,
  ): Promise<Reply | undefined> {
    const held = await shelf.load(key, async () => {
      const loaded = await loadFile(mount, below, facts);
      return loaded && replies.hold(loaded);
    });
    if (held !== undefined) return replies.fromHeld(held, request);
    const located = locateFile(mount, below);
    return located && sendOpened(located, request);
  }

  /** What the shelf has of exactly this file. */
  function kept({ stats }: Located, key: string): Held | undefined {
    const held = shelf.kept(key);
    return held?.identity === identityOf(stats) ? held : undefined;
  }

  return {
    send(located, key, request) {
      const held = kept(located, key);
      if (held !== undefined) {
        shelf.keep(key, held);
        return replies.fromHeld(held, request);
      }
      if (isHoldable(located.stats)) return sendLoaded(located.below, key, request);
      shelf.forget(key);
      return sendOpened(located, request);
    },
    canSend(located, key) {
      if (kept(located, key) !== undefined) return true;
      const opened = openFound(mount, located);
      if (opened !== undefined) closeSync(opened.descriptor);
      return opened !== undefined;
    },
  };
}

/** Opens what was found, or what has taken its place since; undefined when nothing has. */
function openFound(mount: DiskMount, found: Located): OpenFile | undefined {
  let located: Located | undefined = found;
  for (let attempt = 0; attempt < diskAttemptsMax; attempt += 1) {
    if (located === undefined) return undefined;
    const opened = openLocated(located);
    if (opened !== undefined) return opened;
    located = locateFile(mount, found.below);
  }
  throw new Failure('unavailable', 'This file is being replaced; try again in a moment.', {
    retryAfterSeconds: 1,
  });
}
