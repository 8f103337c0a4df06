import type { Writable } from 'node:stream';
import { knownHeadBytesMax, knownHeadsMax } from '../model/limits.ts';
import { headEnd } from './head-text.ts';
import { goesInPieces } from './pieces.ts';
import type { PlainRequest, Prepared } from './prepared.ts';

/**
 * Heads of requests whose answers are prepared, by their bytes. The same bytes are the same
 * request: one that was parsed and let in before need not be again.
 */
export class KnownHeads {
  readonly #requests = new Map<string, PlainRequest>();

  /** What a text of latin1 asks for, where it is known. */
  find(text: string): PlainRequest | undefined {
    return this.#requests.get(text);
  }

  /** Remembers what a head, to its last byte, asks for. */
  keep(head: string, request: PlainRequest): void {
    if (head.length > knownHeadBytesMax) return;
    // The heads of those who go on asking are back at once.
    if (this.#requests.size >= knownHeadsMax) this.#requests.clear();
    this.#requests.set(head, request);
  }
}

/**
 * Writes a prepared answer as Node's server does, on a connection that goes on; false where it is
 * one that only Node can send. `nowMs` are milliseconds since 1970.
 */
export function writePrepared(
  socket: Writable,
  { head, content }: Prepared,
  nowMs: number,
): boolean {
  if (head === undefined) return false;
  if (typeof content === 'object' && goesInPieces(socket, content)) return false;
  const start = head + headEnd(nowMs);
  if (typeof content === 'object') {
    socket.cork();
    socket.write(start, 'latin1');
    socket.write(content);
    socket.uncork();
  } else {
    socket.write(start + (content ?? ''), 'latin1');
  }
  return true;
}
