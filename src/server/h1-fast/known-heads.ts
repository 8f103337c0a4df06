import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { readPlainHead } from './plain-head.ts';
import { knownHeadBytesMax, knownHeadsMax } from '../../model/limits.ts';
import { DirectRequest } from './direct-request.ts';
import { headEnd } from './head-text.ts';
import { goesInPieces } from '../h1/pieces.ts';
import { plainRequest, type PlainRequest, type Prepared } from '../prepared.ts';

/**
 * Heads of requests by their bytes. The same bytes are the same request: one that was parsed and
 * let in before need not be again. Those whose answers are prepared are known to all connections,
 * any other to the one that it came on, as the newest there.
 */
export class KnownHeads {
  readonly #requests = new Map<string, PlainRequest>();
  readonly #newest = new WeakMap<
    Socket,
    { readonly text: string; readonly asked: DirectRequest }
  >();

  /** What a text of latin1 asks for, where an answer was prepared for it. */
  find(text: string): PlainRequest | undefined {
    return this.#requests.get(text);
  }

  /** What any text asks for, if it is the head of a plain request and nothing else. */
  read(text: string, socket: Socket): DirectRequest | undefined {
    const newest = this.#newest.get(socket);
    if (newest?.text === text) return newest.asked;
    const head = readPlainHead(text);
    if (head === undefined) return undefined;
    const asked = new DirectRequest(head, socket, plainRequest({ ...head, httpVersionMinor: 1 }));
    if (text.length <= knownHeadBytesMax) this.#newest.set(socket, { text, asked });
    return asked;
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
  { head, isDated, content }: Prepared,
  nowMs: number,
): boolean {
  if (head === undefined) return false;
  if (typeof content === 'object' && goesInPieces(socket, content)) return false;
  const start = head + headEnd(isDated ? undefined : nowMs);
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
