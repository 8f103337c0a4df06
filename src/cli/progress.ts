import type { Output } from './command.ts';

/** A line on a terminal that changes while something long goes on. */
interface Progress {
  /** Puts a text in place of the one before it, but not more often than can be read. */
  show(text: string): void;
  /** Takes the line away. */
  clear(): void;
}

const showMs = 100;
const cleared = '\r\u001b[K';

/** Makes one on a stream; where nobody watches that, it writes nothing. */
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
