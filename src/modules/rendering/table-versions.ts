import type { Reads } from '../../core/log/store.ts';
import { KIB } from '../../core/values/units.ts';

/**
 * Changes of the log that are read to find the tables with changed rows; after more changes, all
 * tables count as changed.
 */
export const changesReadMax = 1_000;
const changeBytesReadMax = 256 * KIB;

/**
 * Knows when the rows of tables changed last, from the log: each process reads the changes since
 * its last look.
 */
export class TableVersions {
  readonly #reads: Pick<Reads, 'seq' | 'change' | 'rowBytes' | 'row'>;
  readonly #newest = new Map<string, number>();
  /** The seq of the newest change that may concern all tables. */
  #ofAll = 0;
  #seq = -1;

  constructor(reads: Pick<Reads, 'seq' | 'change' | 'rowBytes' | 'row'>) {
    this.#reads = reads;
  }

  /** A text that changes with each change of some tables or of rows in them. */
  version(tables: readonly string[]): string {
    this.#catchUp();
    return tables.map((name) => Math.max(this.#ofAll, this.#newest.get(name) ?? 0)).join(' ');
  }

  #catchUp(): void {
    const newest = this.#reads.seq();
    if (this.#seq < 0 || newest < this.#seq || newest - this.#seq > changesReadMax) {
      this.#ofAll = newest;
      this.#newest.clear();
    } else {
      for (let seq = this.#seq + 1; seq <= newest; seq += 1) this.#read(seq);
    }
    this.#seq = newest;
  }

  #read(seq: number): void {
    if (this.#reads.rowBytes(seq) > changeBytesReadMax) {
      this.#ofAll = seq;
      return;
    }
    const { family, id, data } = this.#reads.change(seq) ?? {};
    if (family === 'table') this.#ofAll = seq;
    if (family !== 'record' || id === undefined) return;
    const table = this.#reads.row(id)?.row.table ?? data?.table;
    if (typeof table === 'string') this.#newest.set(table, seq);
    else this.#ofAll = seq;
  }
}
