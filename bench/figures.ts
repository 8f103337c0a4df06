/** The median, smallest and largest of some measurements. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** Median, smallest and largest of at least one number. */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  const low = sorted[Math.floor(middle)] ?? NaN;
  const high = sorted[Math.ceil(middle)] ?? NaN;
  return { median: (low + high) / 2, min: sorted[0] ?? NaN, max: sorted.at(-1) ?? NaN };
}

/** Spread of `ours / theirs`, each ratio from the two measurements of one round. */
export function ratioOf(ours: readonly number[], theirs: readonly number[]): Spread {
  return spreadOf(ours.map((one, round) => one / (theirs[round] ?? NaN)));
}
