import type { IndexEntry } from '../projections/index-entries.ts';
import type { Reads } from '../store.ts';

/** Counts the page rules that one decision adds to each place. */
export class PlannedPlaces {
  readonly #reads: Reads;
  readonly #more = new Map<string, number>();

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Moves a rule to another place. Throws `too_large` if that has no room. */
  move(from: IndexEntry | undefined, to: IndexEntry | undefined): void {
    const [left, reached] = [from, to].map((place) => place && nameOf(place));
    if (left === reached) return;
    if (to !== undefined && reached !== undefined) {
      const planned = this.#more.get(reached) ?? 0;
      const failure = this.#reads.roomFailure(to, planned);
      if (failure !== undefined) throw failure;
      this.#more.set(reached, planned + 1);
    }
    if (left !== undefined) this.#more.set(left, (this.#more.get(left) ?? 0) - 1);
  }
}

function nameOf({ database, key }: IndexEntry): string {
  return `${database} ${key.toString('latin1')}`;
}
