import { createHash } from 'node:crypto';
import { fstatSync, type BigIntStats } from 'node:fs';
import type { DiskMount } from '../config/config.ts';
import type { Coding } from '../http/coding.ts';
import type { FieldList } from '../http/reply.ts';
import type { Representation } from '../http/represent.ts';
import { withVary } from '../http/vary.ts';
import { diskAttemptsMax, diskHeldFileBytesMax } from '../model/limits.ts';
import { createFileSource, readBytes } from '../http/file-source.ts';
import { mediaType } from './media-type.ts';
import { identityOf, locateFile, openLocated, type OpenFile } from './find-file.ts';
import type { Loaded } from './mount-replies.ts';

/**
 * A file written less than this ago may change again within the same tick of its file system's
 * clock.
 */
const settledMs = 2_000;

/**
 * How a file takes part in an answer: `alone`; as it is, `beside` others that have its content
 * compressed; or as one of those.
 */
export type FileForm = 'alone' | 'beside' | Coding;

/** What goes into the representation of any file of a mount. */
export interface FileFacts {
  /** Fields said of every file of the mount, by its form. */
  readonly fields: Readonly<Record<FileForm, FieldList>>;
  /** The clock, milliseconds since 1970. */
  readonly now: () => number;
}

/** A file to be sent as a path's content. */
export interface NamedFile {
  /** The name that says its media type: that of the file which it may stand beside. */
  readonly name: string;
  readonly form: FileForm;
}

/** The fields of all forms, where the mount itself says some of every file. */
export function fileFields(said: FieldList): FileFacts['fields'] {
  const beside = withVary(said, 'Accept-Encoding');
  const coded = (coding: Coding): FieldList => ['Content-Encoding', coding, ...beside];
  return { alone: said, beside, zstd: coded('zstd'), br: coded('br'), gzip: coded('gzip') };
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
  { below, ...file }: NamedFile & { readonly below: string },
  facts: FileFacts,
): Promise<(Loaded & Pick<OpenFile, 'stats'>) | undefined> {
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
      representation: representFile(file, { stats, bytes, ...facts }),
      bytes,
      stats,
      identity: settled ? identityOf(stats) : undefined,
    };
  }
  return undefined;
}

/**
 * What is said of a file. Its entity tag is made of size, times, inode and coding, and of its bytes
 * where they are at hand: two writes within one tick of the file system's clock leave the same
 * times.
 */
export function representFile(
  { name, form }: NamedFile,
  {
    stats,
    bytes,
    fields,
    now,
  }: FileFacts & { readonly stats: BigIntStats; readonly bytes?: Buffer },
): Representation {
  const { size, mtimeNs, ctimeNs, ino } = stats;
  const coding = form === 'alone' || form === 'beside' ? '' : ` ${form}`;
  const tag = createHash('sha256').update(`${size} ${mtimeNs} ${ctimeNs} ${ino}${coding}\n`);
  if (bytes !== undefined) tag.update(bytes);
  return {
    status: 200,
    contentType: mediaType(name),
    etag: `"${tag.digest('base64url').slice(0, 22)}"`,
    // Nothing was modified later than now (RFC 9110 §8.8.2.1), whatever a file's time may say.
    lastModifiedMs: Math.min(Number(stats.mtimeMs), now()),
    sharesDate: form !== 'alone',
    fields: fields[form],
    bytesLength: Number(size),
  };
}

/** Reads all of an open file and closes it; undefined when it changed meanwhile. */
async function readWhole({ descriptor, stats }: OpenFile): Promise<Buffer | undefined> {
  const source = createFileSource(descriptor);
  try {
    const bytes = await readBytes(source, Number(stats.size));
    if (bytes === undefined) return undefined;
    const after = fstatSync(descriptor, { bigint: true });
    return identityOf(after) === identityOf(stats) ? bytes : undefined;
  } finally {
    await source.close();
  }
}
