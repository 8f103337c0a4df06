import type { Writable } from 'node:stream';
import { keepAliveTimeoutMs, knownHeadBytesMax, knownHeadsMax } from '../model/limits.ts';
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

  /** Remembers what a head, up to its last field's line end, asks for. */
  keep(head: string, request: PlainRequest): void {
    if (head.length >= knownHeadBytesMax) return;
    // The heads of those who go on asking are back at once.
    if (this.#requests.size >= knownHeadsMax) this.#requests.clear();
    this.#requests.set(`${head}\r\n`, request);
  }
}

const keepAliveSeconds = keepAliveTimeoutMs / 1_000;
const staying = `\r\nConnection: keep-alive\r\nKeep-Alive: timeout=${keepAliveSeconds}\r\n\r\n`;

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
  const start = `${head}Date: ${dateText(nowMs)}${staying}`;
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

let secondShown = -1;
let shown = '';

/** A date of RFC 9110 §5.6.7, made once a second. */
function dateText(nowMs: number): string {
  const second = Math.floor(nowMs / 1_000);
  if (second !== secondShown) {
    secondShown = second;
    shown = new Date(second * 1_000).toUTCString();
  }
  return shown;
}
