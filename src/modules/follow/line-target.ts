import { once } from 'node:events';
import type { Writable } from 'node:stream';
import type { FollowTarget, RowPacket } from './follow-tables.ts';

/**
 * Writes each change as a line of JSON, after a seq. The changes of all tables come in the order of
 * seq, so one position is enough for all.
 */
export class LineTarget implements FollowTarget {
  readonly #out: Writable;
  #seq: number;

  constructor(out: Writable, seq: number) {
    [this.#out, this.#seq] = [out, seq];
  }

  open(): Promise<void> {
    return Promise.resolve();
  }

  position(): Promise<number> {
    return Promise.resolve(this.#seq);
  }

  needsSchema(): boolean {
    return false;
  }

  update(): Promise<void> {
    return Promise.resolve();
  }

  async apply(packets: readonly RowPacket[]): Promise<void> {
    const lines = packets.map((packet) => `${JSON.stringify(packet)}\n`);
    if (!this.#out.write(lines.join(''))) await once(this.#out, 'drain');
    this.#seq = Math.max(this.#seq, ...packets.map(({ seq }) => seq));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
