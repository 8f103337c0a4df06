import type { Row } from '../row.ts';

/** Characters of a field that text search reads … */
const searchedCharactersMax = 100_000;

/** … words of them … */
const wordsPerFieldMax = 10_000;

/** … and characters of each. */
const wordCharactersMax = 64;

/** The words of a row: how often each occurs, and how many there are. */
interface RowWords {
  readonly counts: ReadonlyMap<string, number>;
  readonly length: number;
}

/** Made when it is first needed: it loads the dictionaries of all languages. */
let segmenter: Intl.Segmenter | undefined;

/** The words of a text in their order: NFKC and lower case, so that writing does not matter. */
export function* wordsOf(text: string): Iterable<string> {
  const normal = text.slice(0, searchedCharactersMax).normalize('NFKC').toLowerCase();
  segmenter ??= new Intl.Segmenter('und', { granularity: 'word' });
  for (const { segment, isWordLike } of segmenter.segment(normal)) {
    if (isWordLike === true) yield segment.slice(0, wordCharactersMax).toWellFormed();
  }
}

/** The words of the given fields of a row. */
export function rowWords(row: Row, fields: readonly string[]): RowWords {
  const counts = new Map<string, number>();
  let length = 0;
  for (const field of fields) {
    const value = row[field];
    if (typeof value !== 'string') continue;
    let left = wordsPerFieldMax;
    for (const word of wordsOf(value)) {
      if (left === 0) break;
      left -= 1;
      length += 1;
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
  }
  return { counts, length };
}
