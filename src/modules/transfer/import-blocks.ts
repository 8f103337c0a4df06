import { MIB } from '../../core/values/units.ts';
import { contentBytesMax, ruleBytesMax } from '../rules/operations/limits.ts';
import type { ReadLines } from './import-line.ts';
import type { ReadBlock } from './import.ts';

/** A line of an import: in JSON, each character of its content can take six. */
export const importLineBytesMax = 6 * contentBytesMax + 2 * ruleBytesMax;

/** About how many bytes of an import are read at once. */
export const importBlockBytes = MIB;

/** Bytes that are read ahead while earlier lines are being written. */
const importAheadBytesMax = 32 * MIB;

/** Reads whole lines, the first of them with a number. */
export type ReadWholeLines = (bytes: Uint8Array, first: number) => Promise<ReadLines>;

/**
 * Reads an import as its bytes arrive, in blocks of whole lines; `read` may read several blocks at
 * a time. A line over importLineBytesMax is refused without being held in memory.
 */
export async function* readBlocks(
  chunks: AsyncIterable<Uint8Array>,
  read: ReadWholeLines,
): AsyncGenerator<ReadBlock> {
  const ahead: { readonly bytes: number; readonly block: Promise<ReadBlock> }[] = [];
  let first = 1;
  for await (const bytes of wholeLines(chunks)) {
    const block = bytes === undefined ? tooLong(first) : readBlock(read, bytes, first);
    // It is awaited later; without this, a failure before that would end the process.
    block.catch(() => undefined);
    ahead.push({ bytes: bytes?.length ?? importBlockBytes, block });
    first += bytes === undefined ? 1 : lineCount(bytes);
    while (ahead.reduce((sum, one) => sum + one.bytes, 0) > importAheadBytesMax) {
      const oldest = ahead.shift();
      if (oldest !== undefined) yield await oldest.block;
    }
  }
  for (const { block } of ahead) yield await block;
}

const lineFeed = 0x0a;

/** Cuts bytes into blocks of whole lines; undefined stands for a line that is too long. */
async function* wholeLines(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array | undefined> {
  let whole: Uint8Array[] = [];
  let open: Uint8Array[] = [];
  let isTooLong = false;
  for await (const chunk of chunks) {
    let rest = chunk;
    if (isTooLong) {
      const end = chunk.indexOf(lineFeed);
      if (end < 0) continue;
      yield* joined(whole);
      yield undefined;
      [whole, isTooLong, rest] = [[], false, chunk.subarray(end + 1)];
    }
    const end = rest.lastIndexOf(lineFeed) + 1;
    if (end > 0) [whole, open] = [[...whole, ...open, rest.subarray(0, end)], []];
    open.push(rest.subarray(end));
    if (bytesOf(open) > importLineBytesMax) [open, isTooLong] = [[], true];
    if (bytesOf(whole) < importBlockBytes) continue;
    yield* joined(whole);
    whole = [];
  }
  yield* joined([...whole, ...open]);
  if (isTooLong) yield undefined;
}

function bytesOf(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

function* joined(pieces: readonly Uint8Array[]): Iterable<Uint8Array> {
  const bytes = Buffer.concat(pieces);
  if (bytes.length > 0) yield bytes;
}

function lineCount(bytes: Uint8Array): number {
  let count = 0;
  for (let at = -1; at < bytes.length - 1; count += 1) {
    const next = bytes.indexOf(lineFeed, at + 1);
    at = next < 0 ? bytes.length : next;
  }
  return count;
}

async function readBlock(
  read: ReadWholeLines,
  bytes: Uint8Array,
  first: number,
): Promise<ReadBlock> {
  return { ...(await read(bytes, first)), bytes: bytes.length };
}

function tooLong(line: number): Promise<ReadBlock> {
  const why = `longer than ${importLineBytesMax} bytes.`;
  return Promise.resolve({ count: 1, ready: [], refused: [{ line, why }], kept: [], bytes: 0 });
}
