import { withoutFields, type Reply } from '../http/reply.ts';
import type { ContentRequest, Fields, RequestTarget } from '../http/request.ts';
import { Failure } from '../model/failure.ts';
import type { DiskMount } from '../config/config.ts';
import type { CacheUse } from '../observability/memory-use.ts';
import type { Answer } from '../rules/source.ts';
import { createDiskMemory } from './file-cache.ts';
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

/** Who asked for what has failed. */
export type Failed = RequestTarget & Pick<ContentRequest, 'fields' | 'address' | 'visitor'>;

/**
 * The page that the first mount which covers a request and has one shows in place of a failure,
 * with its status; undefined where none has. It says nothing by which it could be kept.
 */
export async function errorPage(
  mounts: readonly Mount[],
  status: number,
  failed: Failed,
): Promise<Reply | undefined> {
  const request = { ...failed, ...plainGet(failed.fields['accept-encoding']) };
  for (const mount of mounts) {
    const page = await unlessRefused(() => mount.errorPage(status, request));
    if (page !== undefined) return { ...withoutReuse(page), status };
  }
  return undefined;
}

/** Whatever was asked for, all of the page is meant. */
function plainGet(acceptEncoding: string | undefined) {
  const fields = Object.create(null) as Fields & Record<string, string>;
  if (acceptEncoding !== undefined) fields['accept-encoding'] = acceptEncoding;
  return { method: 'GET', fields, body: undefined, signal: new AbortController().signal };
}

function withoutReuse({ status, fields, body, source }: Reply): Reply {
  const names = ['etag', 'last-modified', 'accept-ranges', 'cache-control'];
  return { status, fields: withoutFields(fields, ...names), body, source };
}

/** A page that cannot be read is none: there is a failure to tell of already. */
async function unlessRefused(
  read: () => ReturnType<Mount['errorPage']>,
): Promise<Reply | undefined> {
  try {
    return await read();
  } catch (thrown) {
    if (thrown instanceof Failure) return undefined;
    throw thrown;
  }
}
