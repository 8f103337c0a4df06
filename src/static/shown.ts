import type { Coding } from '../http/coding.ts';
import type { Fields } from '../http/request.ts';
import { chooseBeside, type Beside } from './beside.ts';
import { identityOf, type Located } from './regular-file.ts';
import type { Held } from './replies.ts';

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
