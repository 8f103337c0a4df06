import type { DiskMount } from '../config/config.ts';
import type { Reply } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import type { CacheUse } from '../observability/memory-use.ts';
import { errorPage, type Failed } from './error-page.ts';
import type { Answer } from '../rules/source.ts';
import { createDiskMemory } from './memory.ts';
import { createMount, type Mount } from './mount.ts';

/**
 * Answers from files: the first source of the precedence, and its last resort
 * (docs/design/configuration.md#the-ini-file `[disk.*]`, §3).
 */
export interface Disk {
  /** In the order in which they are asked. */
  readonly mounts: readonly Mount[];
  /**
   * The answer of the first mount that has the file, at once where it is held in memory; undefined
   * where no mount has it or the method is neither GET nor HEAD. Fails with `forbidden` for a file
   * that the server may not read, and with `unavailable` when it has too many files open.
   */
  respond(request: ContentRequest): Answer;
  /**
   * The `fallback` file of the first mount that covers the request and has one, with 200. Fails as
   * respond does.
   */
  fallback(request: ContentRequest): Promise<Reply | undefined>;
  /** As errorPage, of all mounts. */
  errorPage(status: number, failed: Failed): Promise<Reply | undefined>;
  /** What is in memory of files. */
  memory(): CacheUse;
  /**
   * Waits for files being read into memory and lets go of all; requests still in flight end well.
   */
  close(): Promise<void>;
}

/**
 * Makes the disk source of mounts in the order in which they are asked; `now` is in milliseconds.
 */
export function createDisk({
  mounts,
  now,
}: {
  readonly mounts: readonly DiskMount[];
  readonly now: () => number;
}): Disk {
  const memory = createDiskMemory(now);
  const asked = mounts.map((mount) => createMount(mount, { ...memory, now }));

  const withErrors = asked.filter((_, at) => mounts[at]?.errors !== undefined);

  /** Asks the mounts one by one, from one on, and waits only for one that has to read. */
  function respondFrom(first: number, request: ContentRequest): Answer {
    for (let at = first; at < asked.length; at += 1) {
      const reply = asked[at]?.respond(request);
      if (reply instanceof Promise) {
        return reply.then((read) => read ?? respondFrom(at + 1, request));
      }
      if (reply !== undefined) return reply;
    }
    return undefined;
  }

  return {
    mounts: asked,
    respond: (request) => respondFrom(0, request),
    async fallback(request) {
      for (const mount of asked) {
        const reply = await mount.fallback(request);
        if (reply !== undefined) return reply;
      }
      return undefined;
    },
    errorPage: async (status, failed) =>
      withErrors.length === 0 ? undefined : errorPage(withErrors, status, failed),
    memory: () => memory.shelf.use('files'),
    close: () => memory.shelf.close(),
  };
}
