import type { Writable } from 'node:stream';
import { type Release, SharedLimit, type Sharer } from '../fair/shared-limit.ts';
import type { FileSource } from '../http/reply.ts';
import { MIB } from '../values/units.ts';
import { type FileBuffer, takeBuffer } from './h1/file-buffers.ts';
import { writeAll } from './h1/pieces.ts';

/**
 * Pieces of files that are read at the same time, each of which is then written. A thousand clients
 * whose sockets have room would otherwise occupy the event loop, and the threads that read files,
 * until the system has filled all of them.
 */
export const piecesAtOnceMax = 8;

/**
 * A client reads quickly if it has read this many bytes, more than the system holds for it, and the
 * last piece within this time.
 */
export const quickBytesMin = 4 * MIB;
const quickMs = 1_000;

const turns = new SharedLimit({
  what: 'pieces of files',
  held: 'short',
  max: piecesAtOnceMax,
  // Each waits with one request, and the number of these has a limit of its own.
  waiting: { max: Infinity, ms: Infinity },
});

/** What a client gets of a file. */
interface FileRange {
  readonly file: FileSource;
  readonly from: number;
  readonly to: number;
  /** Whose turns it takes. */
  readonly client: Sharer;
}

/**
 * Copies bytes of a file from one position up to another, piece by piece in turns that clients
 * share. For a client that reads quickly, it reads a piece while it writes the one before; a slow
 * one has a single piece in memory. Resolves to the number of bytes that the client has taken:
 * fewer if the file has become shorter or the client has disconnected.
 */
export async function copyRange(
  into: Writable,
  { file, from, to, client }: FileRange,
): Promise<number> {
  let position = from;
  let taken = 0;
  let writing: Promise<WrittenPiece> | undefined;
  let lastMs = Infinity;
  /** Waits for the piece before; returns whether the client goes on. */
  const settle = async (): Promise<boolean> => {
    if (writing === undefined) return true;
    const { bytes, ms } = await writing;
    writing = undefined;
    taken += bytes;
    lastMs = ms;
    return bytes > 0;
  };
  while (position < to) {
    const readsQuickly = taken >= quickBytesMin && lastMs <= quickMs;
    if (!readsQuickly && !(await settle())) return taken;
    const release = await turnOf(client);
    try {
      const piece = await readPiece(file, position, takeBuffer(to - position, readsQuickly));
      if (piece === undefined) break;
      position += piece.bytes.length;
      if (writing !== undefined) {
        // Others have their turns while the client reads.
        release();
        if (!(await settle())) {
          piece.release(true);
          return taken;
        }
      }
      writing = writePiece(into, piece);
    } finally {
      release();
    }
  }
  await settle();
  return taken;
}

function turnOf(client: Sharer): Promise<Release> | Release {
  const release = turns.tryAcquire(client);
  return (
    release ??
    new Promise((resolve) => {
      turns.wait(client, 1, resolve);
    })
  );
}

/** Reads the next piece; resolves to undefined at the end of the file. */
async function readPiece(
  file: FileSource,
  position: number,
  { bytes, release }: FileBuffer,
): Promise<FileBuffer | undefined> {
  let count = 0;
  try {
    count = await file.read(bytes, position);
  } finally {
    if (count === 0) release(true);
  }
  return count === 0 ? undefined : { bytes: bytes.subarray(0, count), release };
}

/** A piece that the socket has taken: 0 bytes if the connection has closed. */
interface WrittenPiece {
  readonly bytes: number;
  readonly ms: number;
}

async function writePiece(into: Writable, piece: FileBuffer): Promise<WrittenPiece> {
  const beganMs = performance.now();
  const bytes = await writeAll(into, piece.bytes);
  // A socket reads from a buffer until the whole write is done.
  piece.release(bytes > 0);
  return { bytes, ms: performance.now() - beganMs };
}
