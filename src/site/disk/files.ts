import type { DiskMount } from '../../config/config.ts';
import type { Reply } from '../../http/reply.ts';
import type { ContentRequest } from '../../http/request.ts';
import { Failure } from '../../model/failure.ts';
import { diskAttemptsMax } from '../../model/limits.ts';
import { isHoldable, loadFile, representFile, type FileFacts } from './file-content.ts';
import { identityOf, locateFile, openLocated, type Located } from './regular-file.ts';
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
  function sendOpened(found: Located | undefined, request: ContentRequest): Reply | undefined {
    let located = found;
    for (let attempt = 0; attempt < diskAttemptsMax; attempt += 1) {
      if (located === undefined) return undefined;
      const { below } = located;
      const opened = openLocated(located);
      if (opened !== undefined) {
        // Made from the open file itself, so that its validators are never another file's.
        const representation = representFile(below, { stats: opened.stats, ...facts });
        return replies.fromOpen(opened, representation, request);
      }
      located = locateFile(mount, below);
    }
    throw new Failure('unavailable', 'This file is being replaced; try again in a moment.', {
      retryAfterSeconds: 1,
    });
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
    return held === undefined
      ? sendOpened(locateFile(mount, below), request)
      : replies.fromHeld(held, request);
  }

  return {
    send(located, key, request) {
      const held = shelf.kept(key);
      if (held?.identity === identityOf(located.stats)) {
        shelf.keep(key, held);
        return replies.fromHeld(held, request);
      }
      if (isHoldable(located.stats)) return sendLoaded(located.below, key, request);
      shelf.forget(key);
      return sendOpened(located, request);
    },
  };
}
