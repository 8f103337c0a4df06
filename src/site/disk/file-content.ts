import { createHash } from 'node:crypto';
import { fstatSync, type BigIntStats } from 'node:fs';
import type { DiskMount } from '../../config/config.ts';
import type { FieldList } from '../../http/reply.ts';
import type { Representation } from '../../http/represent.ts';
import { diskAttemptsMax, diskHeldFileBytesMax } from '../../model/limits.ts';
import { createFileSource } from './file-source.ts';
import { mediaType } from './media-type.ts';
import { identityOf, locateFile, openLocated, type OpenFile } from './regular-file.ts';
import type { Loaded } from './replies.ts';

/**
 * A file written less than this ago may change again within the same tick of its file system's
 * clock.
 */
const settledMs = 2_000;

/** What goes into the representation of any file of a mount. */
export interface FileFacts {
  /** Fields said of every file of the mount. */
  readonly fields: FieldList;
  /** The clock, milliseconds since 1970. */
  readonly now: () => number;
}

/** Whether a file is small enough to be held in memory. */
export function isHoldable({ size }: BigIntStats): boolean {
  return size <= diskHeldFileBytesMax;
}

/**
 * Reads a small file below the root, its bytes and its validators being of one moment; undefined
 * when it is gone, large, or changes faster than it can be read. Fails as unlessAbsent does.
 */
export async function loadFile(
  mount: DiskMount,
  below: string,
  facts: FileFacts,
): Promise<Loaded | undefined> {
  for (let attempt = 0; attempt < diskAttemptsMax; attempt += 1) {
    const located = locateFile(mount, below);
    if (located === undefined || !isHoldable(located.stats)) return undefined;
    const lookedAtMs = facts.now();
    const opened = openLocated(located);
    if (opened === undefined) continue;
    const { stats } = opened;
    const bytes = await readWhole(opened);
    if (bytes === undefined) continue;
    const settled = lookedAtMs - Number(stats.ctimeMs) > settledMs;
    return {
      representation: representFile(below, { stats, bytes, ...facts }),
      bytes,
      identity: settled ? identityOf(stats) : undefined,
    };
  }
  return undefined;
}

/**
 * What is said of a file. Its entity tag is made of size, times and inode, and of its bytes where
 * they are at hand: two writes within one tick of the file system's clock leave the same times.
 */
export function representFile(
  name: string,
  {
    stats,
    bytes,
    fields,
    now,
  }: FileFacts & { readonly stats: BigIntStats; readonly bytes?: Buffer },
): Representation {
  const { size, mtimeNs, ctimeNs, ino } = stats;
  const tag = createHash('sha256').update(`${size} ${mtimeNs} ${ctimeNs} ${ino}\n`);
  if (bytes !== undefined) tag.update(bytes);
  return {
    status: 200,
    contentType: mediaType(name),
    etag: `"${tag.digest('base64url').slice(0, 22)}"`,
    // Nothing was modified later than now (RFC 9110 §8.8.2.1), whatever a file's time may say.
    lastModifiedMs: Math.min(Number(stats.mtimeMs), now()),
    fields,
    bytesLength: Number(size),
  };
}

/** Reads all of an open file and closes it; undefined when it changed meanwhile. */
async function readWhole({ descriptor, stats }: OpenFile): Promise<Buffer | undefined> {
  const source = createFileSource(descriptor);
  try {
    // Not from Node's pool, of which a small slice would keep a large piece alive.
    const bytes = Buffer.allocUnsafeSlow(Number(stats.size));
    let filled = 0;
    while (filled < bytes.length) {
      const bytesRead = await source.read(bytes.subarray(filled), filled);
      if (bytesRead === 0) return undefined;
      filled += bytesRead;
    }
    const after = fstatSync(descriptor, { bigint: true });
    return identityOf(after) === identityOf(stats) ? bytes : undefined;
  } finally {
    await source.close();
  }
}
