import { MIB } from '../../values/units.ts';
import { initialWindow } from './frames.ts';

/** A number of bytes that the connections of a process share. */
export class SharedBytes {
  #free: number;

  constructor(bytes: number) {
    this.#free = bytes;
  }

  /** Takes a number of bytes; false if there are not enough. */
  take(bytes: number): boolean {
    if (bytes > this.#free) return false;
    this.#free -= bytes;
    return true;
  }

  free(bytes: number): void {
    this.#free += bytes;
  }
}

/** … and at most, for all requests of a connection that sends as fast as the server reads. */
export const http2WindowBytesMax = 4 * MIB;

/** How much a window grows in a round trip. */
const growth = 4;
/** The part of the window after which a round trip is measured: a short message needs no PING. */
const measuredPart = 1 / 8;

/**
 * The flow-control window of a connection for the content of requests (RFC 9113 §5.2). It grows
 * while the server reads what arrives and a round trip brings half of it: then the window, and not
 * the client or the source behind the server, sets the pace. A PING measures the round trip, as
 * gRPC does.
 */
export class ReceiveWindow {
  /** Bytes that may arrive unread. */
  size = initialWindow;
  readonly #shared: SharedBytes;
  /** Bytes read by the server since the last PING; undefined while none is under way. */
  #sample: number | undefined;
  /** Bytes read since the last acknowledgement, while no PING is under way. */
  #unmeasured = 0;

  constructor(shared: SharedBytes) {
    this.#shared = shared;
  }

  /**
   * Counts content that the server has read. Returns true if a PING is to be sent, whose
   * acknowledgement calls `acknowledged`.
   */
  consumed(bytes: number): boolean {
    if (this.#sample !== undefined) {
      this.#sample += bytes;
      return false;
    }
    if (this.size >= http2WindowBytesMax || bytes === 0) return false;
    this.#unmeasured += bytes;
    if (this.#unmeasured < this.size * measuredPart) return false;
    this.#unmeasured = 0;
    this.#sample = bytes;
    return true;
  }

  /** To be called with the acknowledgement of the PING; returns whether the window has grown. */
  acknowledged(): boolean {
    const sample = this.#sample ?? 0;
    this.#sample = undefined;
    if (2 * sample < this.size) return false;
    const grown = Math.min(growth * this.size, http2WindowBytesMax);
    if (!this.#shared.take(grown - this.size)) return false;
    this.size = grown;
    return true;
  }

  /** Gives back what the window has above its initial size; to be called when it closes. */
  close(): void {
    this.#shared.free(this.size - initialWindow);
    this.size = initialWindow;
  }
}
