/**
 * The name that a misspelt one was probably meant to be: the one with the fewest slips, if those
 * are few for its length. Capitals and `-` for `_` are no slips; of equally near names the first
 * wins.
 */
export function nearestName(text: string, names: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let fewest = Infinity;
  for (const name of names) {
    const slipsMax = Math.max(1, Math.floor(name.length / 3));
    if (Math.abs(name.length - text.length) > slipsMax) continue;
    const slips = countSlips(plain(text), plain(name));
    if (slips <= slipsMax && slips < fewest) {
      nearest = name;
      fewest = slips;
    }
  }
  return nearest;
}

/**
 * Letters to insert, drop, change or swap with their neighbour to come from one text to the other.
 */
function countSlips(from: string, to: string): number {
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
