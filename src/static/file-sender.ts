import type { Answer } from '../rules/source.ts';
import { closeSync } from 'node:fs';
import type { DiskMount } from '../config/config.ts';
import type { Reply } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import { Failure } from '../model/failure.ts';
import { diskAttemptsMax } from '../model/limits.ts';
import { locateBeside, type Beside } from './precompressed.ts';
import { isHoldable, representFile, type FileForm } from './file-content.ts';
import {
  chooseShown,
  identityOfAll,
  isHeld,
  loadShown,
  type Shown,
  type ShowParts,
} from './cached-file.ts';
import { locateFile, openLocated, type Located, type OpenFile } from './find-file.ts';
import type { Shelf } from './file-cache.ts';

/**
 * Sends the files of one mount: small ones from memory, others from the disk as the client takes
 * them.
 */
export interface Files {
  /**
   * The answer for a regular file located just now, in the best form for the request; what is small
   * of it is kept on the shelf under the key.
   */
  send(located: Located, key: string, request: ContentRequest): Answer;
  /** Whether send would have the file's bytes; opens it, but reads nothing. Fails as send does. */
  canSend(located: Located, key: string): boolean;
}

/** Makes the sender of a mount's files. */
export function createFiles(parts: ShowParts, shelf: Shelf<Shown>): Files {
  const { mount, replies, facts } = parts;

  /** Sends a file as the content of a name, which is its own unless it stands beside that. */
  function sendOpened(
    found: Located,
    file: { readonly name: string; readonly form: FileForm },
    request: ContentRequest,
  ): Reply | undefined {
    const opened = openFound(mount, found);
    if (opened === undefined) return undefined;
    // Made from the open file itself, so that its validators are never another file's.
    const representation = representFile(file, { stats: opened.stats, ...facts });
    return replies.fromOpen(opened, representation, request);
  }

  function sendShown(shown: Shown, located: Located, request: ContentRequest): Reply | undefined {
    const { plain, beside } = shown;
    const name = located.below;
    const chosen = chooseShown(shown, request.fields);
    if (chosen !== undefined && isHeld(chosen)) return replies.fromHeld(chosen, request);
    if (chosen !== undefined) {
      const form = chosen.coding;
      const coded = unlessRefused(() => sendOpened(chosen.located, { name, form }, request));
      if (coded !== undefined) return coded;
    }
    if (plain !== undefined) return replies.fromHeld(plain, request);
    const form = beside === undefined ? 'alone' : 'beside';
    return sendOpened(located, { name, form }, request);
  }

  async function sendLoaded(
    located: Located,
    { key, beside }: { readonly key: string; readonly beside: Beside<Located> | undefined },
    request: ContentRequest,
  ): Promise<Reply | undefined> {
    const shown = await shelf.load(key, () => loadShown(parts, located, beside));
    if (shown !== undefined) return sendShown(shown, located, request);
    const again = locateFile(mount, located.below);
    return again && sendOpened(again, { name: located.below, form: 'alone' }, request);
  }

  return {
    send(located, key, request) {
      const beside = locateBeside(mount, located);
      const kept = shelf.kept(key);
      if (kept?.identity === identityOfAll(located, beside)) {
        shelf.keep(key, kept);
        return sendShown(kept, located, request);
      }
      // Nothing is ever held of a large file that has none beside it.
      if (beside !== undefined || isHoldable(located.stats)) {
        return sendLoaded(located, { key, beside }, request);
      }
      shelf.forget(key);
      return sendOpened(located, { name: located.below, form: 'alone' }, request);
    },
    canSend(located, key) {
      const kept = shelf.kept(key);
      const identity = identityOfAll(located, locateBeside(mount, located));
      if (kept?.identity === identity && kept.plain !== undefined) return true;
      const opened = openFound(mount, located);
      if (opened !== undefined) closeSync(opened.descriptor);
      return opened !== undefined;
    },
  };
}

/** What opening a file beside another one came to; that other one can be sent in its place. */
function unlessRefused<T>(open: () => T): T | undefined {
  try {
    return open();
  } catch (thrown) {
    if (thrown instanceof Failure) return undefined;
    throw thrown;
  }
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
