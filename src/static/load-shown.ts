import type { DiskMount } from '../config/config.ts';
import { codings, type Coding } from '../http/coding.ts';
import { unlessForbiddenLater } from './absence.ts';
import { misfitOf, type Beside } from './beside.ts';
import { isHoldable, loadFile, type FileFacts } from './file-content.ts';
import type { Located } from './regular-file.ts';
import type { Held, Replies } from './replies.ts';
import { identityOfAll, type Shown, type Unheld } from './shown.ts';

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
