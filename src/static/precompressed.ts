import { closeSync, type BigIntStats } from 'node:fs';
import type { DiskMount } from '../config/config.ts';
import { codings, wantedCodings, type ByCoding, type Coding } from '../http/coding.ts';
import type { Fields } from '../http/request.ts';
import { unlessForbidden } from './file-errors.ts';
import { locateFile, openLocated, type Located } from './find-file.ts';

/** What ends the name of a file that has the content of another one, compressed. */
const extensions: ByCoding<string> = { zstd: '.zst', br: '.br', gzip: '.gz' };

/** What there is of some codings. */
export type Beside<T> = Partial<ByCoding<T>>;

/**
 * The files beside a located one that have its content compressed, by the rules that the file
 * itself is found by; undefined where there is none, or where the mount is not to look. One that is
 * older than the file is of an earlier state of it and not among them, nor is an empty one, which
 * has yet to be written, or one that may not be looked at.
 */
export function locateBeside(mount: DiskMount, file: Located): Beside<Located> | undefined {
  if (!mount.precompressed) return undefined;
  let beside: Partial<Record<Coding, Located>> | undefined;
  for (const coding of codings) {
    const located = locateInCoding(mount, file, coding);
    if (located === undefined || misfitOf(located, file) !== undefined) continue;
    beside ??= {};
    beside[coding] = located;
  }
  return beside;
}

/** The first of the codings a request wants (RFC 9110 §12.5.3) of which there is something. */
export function chooseBeside<T>(beside: Beside<T> | undefined, fields: Fields): T | undefined {
  if (beside === undefined) return undefined;
  for (const coding of wantedCodings(fields['accept-encoding'])) {
    const found = beside[coding];
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What whoever wonders about the coding of a file's answers wants to know, in sentences. */
export function besideNotes(mount: DiskMount, file: Located): readonly string[] {
  if (!mount.precompressed) return [];
  return codings.flatMap((coding) => {
    const located = locateInCoding(mount, file, coding);
    if (located === undefined) return [];
    const name = located.below.slice(located.below.lastIndexOf('/') + 1);
    const misfit = misfitOf(located, file);
    if (misfit !== undefined) return [`${name} is ${misfit}, and not used.`];
    return canOpen(located)
      ? [`Callers that accept ${coding} are sent ${name}.`]
      : [`${name} cannot be read by the server, and is not used.`];
  });
}

function canOpen(located: Located): boolean {
  const opened = unlessForbidden(() => openLocated(located));
  if (opened !== undefined) closeSync(opened.descriptor);
  return opened !== undefined;
}

/** What may not be looked at is passed over: the file itself can still be sent. */
function locateInCoding(mount: DiskMount, { below }: Located, coding: Coding): Located | undefined {
  return unlessForbidden(() => locateFile(mount, below + extensions[coding]));
}

/**
 * Why a file has not the content of another one in a coding; undefined where it may have. No coding
 * makes nothing of anything, be it nothing itself.
 */
export function misfitOf(
  beside: Looked,
  file: Looked,
): 'older than the file itself' | 'empty' | undefined {
  if (isOlder(beside, file)) return 'older than the file itself';
  return beside.stats.size === 0n ? 'empty' : undefined;
}

/**
 * Whether a file was written before another one. Tools that give what they compress the time of the
 * original often know whole seconds only.
 */
function isOlder(one: Looked, other: Looked): boolean {
  const difference = other.stats.mtimeNs - one.stats.mtimeNs;
  if (one.stats.mtimeNs % secondNs !== 0n) return difference > 0n;
  return difference >= secondNs;
}

interface Looked {
  readonly stats: Pick<BigIntStats, 'mtimeNs' | 'size'>;
}

const secondNs = 1_000_000_000n;
