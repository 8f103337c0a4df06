/** A value, and who has it in the cache. */
interface Owned<T> {
  readonly owner: string;
  readonly value: T;
}

/**
 * A cache of few entries that clients share: when it is full, the client that has most loses what
 * it has not used for the longest time. So nobody loses all to one who uses many.
 */
export class SharedCache<T> {
  readonly #max: number;
  /** In the order of their last use. */
  readonly #entries = new Map<string, Owned<T>>();

  constructor(max: number) {
    this.#max = max;
  }

  /** The value of a key, which counts as used now. */
  get(key: string): T | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** Sets the value of a key for its owner. */
  set(key: string, entry: Owned<T>): void {
    this.#entries.delete(key);
    if (this.#entries.size >= this.#max) {
      const held = [...this.#entries].map(([name, { owner }]) => ({ name, owner }));
      this.#entries.delete(firstToGo(held, entry.owner)?.name ?? '');
    }
    this.#entries.set(key, entry);
  }
}

/**
 * The entry that makes room for another one of an owner: the first one of the owner that has most,
 * with the one that comes. `held` has the oldest first.
 */
export function firstToGo<T extends { readonly owner: string }>(
  held: readonly T[],
  comer: string,
): T | undefined {
  const counts = new Map([[comer, 1]]);
  for (const { owner } of held) counts.set(owner, (counts.get(owner) ?? 0) + 1);
  const most = Math.max(...held.map(({ owner }) => counts.get(owner) ?? 0));
  // Of owners that have as many, the one that comes makes room itself.
  const isOwn = counts.get(comer) === most && held.some(({ owner }) => owner === comer);
  return held.find(({ owner }) => (isOwn ? owner === comer : counts.get(owner) === most));
}
