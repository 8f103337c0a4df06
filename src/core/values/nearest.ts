/**
 * The name that a misspelt one most likely stands for: the one at the smallest edit distance, which
 * may be at most a third of its length. Case and `-` for `_` make no difference; of equally near
 * names, the first one wins.
 */
export function nearestName(text: string, names: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let smallest = Infinity;
  for (const name of names) {
    const distanceMax = Math.max(1, Math.floor(name.length / 3));
    if (Math.abs(name.length - text.length) > distanceMax) continue;
    const distance = editDistance(plain(text), plain(name));
    if (distance <= distanceMax && distance < smallest) {
      nearest = name;
      smallest = distance;
    }
  }
  return nearest;
}

/**
 * The optimal string alignment distance: insertions, deletions, substitutions and swaps of
 * neighbours that turn one text into the other.
 */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1];
      const swapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current.push(
        Math.min(
          at(current, column - 1) + 1,
          at(last, column) + 1,
          at(last, column - 1) + (same ? 0 : 1),
          swapped ? at(beforeLast, column - 2) + 1 : Infinity,
        ),
      );
    }
    beforeLast = last;
    last = current;
  }
  return at(last, to.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Infinity;
}

function plain(text: string): string {
  return text.toLowerCase().replaceAll('-', '_');
}
