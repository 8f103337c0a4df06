import type { Stream } from './stream.ts';

/** Streams that ended lately, which a client may still name in a frame. */
export const http2EndedStreamsMax = 256;

/** The streams of a connection that ended last, with who reset them. */
export class EndedStreams {
  readonly #ids: number[] = [];
  readonly #resetBy: Stream['resetBy'][] = [];
  /** The place of the next one: the oldest is overwritten. */
  #next = 0;

  add(id: number, resetBy: Stream['resetBy']): void {
    this.#ids[this.#next] = id;
    this.#resetBy[this.#next] = resetBy;
    this.#next = (this.#next + 1) % http2EndedStreamsMax;
  }

  /** Who reset a stream, undefined if nobody did; `unknown` if it ended long ago. */
  resetBy(id: number): Stream['resetBy'] | 'unknown' {
    const size = this.#ids.length;
    // The newest first: a stream that was refused again is there twice.
    for (let back = 1; back <= size; back += 1) {
      const at = (this.#next - back + size) % size;
      if (this.#ids[at] === id) return this.#resetBy[at];
    }
    return 'unknown';
  }
}
