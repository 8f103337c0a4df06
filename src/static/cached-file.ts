import type { DiskMount } from '../config/config.ts';
import { codings, type Coding } from '../http/coding.ts';
import { unlessForbiddenLater } from './file-errors.ts';
import { chooseBeside, misfitOf, type Beside } from './precompressed.ts';
import { isHoldable, loadFile, type FileFacts } from './file-content.ts';
import type { Held, Replies } from './mount-replies.ts';
import type { Fields } from '../http/request.ts';
import { identityOf, type Located } from './find-file.ts';

/** What a mount shows at a path: the bytes of all that is small enough to be held in memory. */
export interface Shown {
  /** The file or listing as it is; undefined for a large file. */
  readonly plain: Held | undefined;
  readonly beside: Beside<Held | Unheld> | undefined;
  /**
   * What all of these files were; undefined where a later change of one could not be told by it.
   */
  readonly identity: string | undefined;
}

/** A large file with the content in a coding, to be opened when it is sent. */
export interface Unheld {
  readonly coding: Coding;
  readonly located: Located;
}

/** What of a path's content a request is sent; undefined for a large file as it is. */
export function chooseShown({ plain, beside }: Shown, fields: Fields): Held | Unheld | undefined {
  return chooseBeside(beside, fields) ?? plain;
}

/** What of a path's content a request is sent, if that is held in memory. */
export function heldOf(shown: Shown | undefined, fields: Fields): Held | undefined {
  const chosen = shown && chooseShown(shown, fields);
  return chosen !== undefined && isHeld(chosen) ? chosen : undefined;
}

/** Whether the bytes of something shown are held in memory. */
export function isHeld(shown: Held | Unheld): shown is Held {
  return 'whole' in shown;
}

/** The bytes that all of it takes. */
export function shownBytes({ plain, beside }: Shown): number {
  let bytes = plain?.bytes.length ?? 0;
  for (const one of Object.values(beside ?? {})) if (isHeld(one)) bytes += one.bytes.length;
  return bytes;
}

/** What a file and those beside it are, as a Shown's identity says it. */
export function identityOfAll(file: Located, beside: Beside<Located> | undefined): string {
  let identity = identityOf(file.stats);
  for (const { below, stats } of Object.values(beside ?? {})) {
    identity += ` ${below} ${identityOf(stats)}`;
  }
  return identity;
}

/** What goes into everything that a mount shows. */
export interface ShowParts {
  readonly mount: DiskMount;
  readonly replies: Replies;
  readonly facts: FileFacts;
}

/**
 * Reads what is small of a file and of those found beside it into memory; undefined when the file
 * itself is gone, or changes faster than it can be read. What is beside it and cannot be read, or
 * has been overtaken by the file meanwhile, is not shown. Fails as loadFile does for the file.
 */
export async function loadShown(
  { mount, replies, facts }: ShowParts,
  file: Located,
  beside: Beside<Located> | undefined,
): Promise<Shown | undefined> {
  const name = file.below;
  const form = beside === undefined ? 'alone' : 'beside';
  const loaded = isHoldable(file.stats)
    ? await loadFile(mount, { below: name, name, form }, facts)
    : undefined;
  if (loaded === undefined && isHoldable(file.stats)) return undefined;
  const plain = loaded && replies.hold(loaded);
  const shown: Partial<Record<Coding, Held | Unheld>> = {};
  let isSettled = loaded === undefined || loaded.identity !== undefined;
  for (const coding of codings) {
    const located = beside?.[coding];
    if (located === undefined) continue;
    if (!isHoldable(located.stats)) {
      shown[coding] = { coding, located };
      continue;
    }
    const { below } = located;
    const coded = await unlessForbiddenLater(() =>
      loadFile(mount, { below, name, form: coding }, facts),
    );
    if (coded === undefined || misfitOf(coded, loaded ?? file) !== undefined) continue;
    if (coded.identity === undefined) isSettled = false;
    shown[coding] = replies.hold(coded);
  }
  return {
    plain,
    beside: beside && shown,
    identity: isSettled ? identityOfAll({ ...file, ...loaded }, beside) : undefined,
  };
}
