import type { Output } from './command.ts';
import { counted } from '../core/values/units.ts';

/** A line of a terminal that shows the progress of a long task. */
interface Progress {
  /** Replaces the line, at most every 100 ms. */
  show(text: string): void;
  /** Removes the line. */
  clear(): void;
}

const showMs = 100;
const cleared = '\r\u001b[K';

/** Creates a progress line; if the stream is not a terminal, it writes nothing. */
export function createProgress(
  stream: Pick<Output, 'isTTY' | 'write'>,
  now: () => number,
): Progress {
  let shownMs: number | undefined;
  return {
    show(text) {
      if (!stream.isTTY || (shownMs !== undefined && now() - shownMs < showMs)) return;
      shownMs = now();
      stream.write(`${cleared}${text}`);
    },
    clear() {
      if (shownMs !== undefined) stream.write(cleared);
      shownMs = undefined;
    },
  };
}

/** Files and their bytes as text: `3 files of assets, 1200 bytes`. */
export function copiedText({
  files,
  bytes,
}: {
  readonly files: number;
  readonly bytes: number;
}): string {
  return `${counted(files, 'file')} of assets, ${bytes} bytes`;
}
