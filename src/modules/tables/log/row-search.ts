import type { Databases } from '../../../core/log/databases.ts';
import { keyOf, storedJson } from '../../../core/log/encoding.ts';
import { searchSliceRows } from '../../../core/log/limits.ts';
import type { SearchOptions, SearchStep, TableCounts } from './reads.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { StoredRow } from '../row.ts';
import { type StoredTable, tableIndexes } from '../table.ts';
import { keyPrefix, prefixEnd, rowWords, unpackWord, wordKey, wordsOf } from './index-key.ts';
import { tableCounts } from './table-reads.ts';

/** Words of a search. */
const searchWordsMax = 16;

/** Words that begin with the last word of a search. */
const searchPrefixWordsMax = 200;

/** Rows that a search ranks, the newest; older ones with the same words are not found … */
const searchRankedRowsMax = 50_000;

type SearchedDatabases = Pick<Databases, 'row' | 'rowword' | 'tablecount'>;

/** The parameters of BM25: how fast further occurrences count less, and how much lengths matter. */
const [occurrences, lengths] = [1.2, 0.75];

/** A word of the search. */
interface Term {
  /** The words of rows that it matches: itself, or those that begin with it. */
  readonly words: readonly string[];
  /** The number of rows that have it, counted up to searchRankedRowsMax. */
  readonly rows: number;
}

/** How often a row has a term, and how many words it has. */
interface Posting {
  readonly count: number;
  readonly length: number;
}

/** @inheritdoc Reads.searchRows. */
export function* searchRows(
  databases: SearchedDatabases,
  stored: StoredTable | undefined,
  text: string,
  { after, isByRowAlone = false }: SearchOptions = {},
): Iterable<SearchStep> {
  if (stored === undefined) return;
  const search = new Search(databases, stored, { text, isByRowAlone });
  if (search.isEmpty) return;
  const found: Ranked[] = [];
  for (const ranked of search.matches()) {
    if (ranked === undefined) yield noRow;
    else found.push(ranked);
  }
  const place = after === undefined ? undefined : parseCursor(after);
  for (const ranked of found.toSorted(byRank)) {
    if (place !== undefined && byRank(ranked, place) <= 0) continue;
    yield { id: ranked.id, cursor: `${ranked.score} ${ranked.id}` };
  }
}

const noRow: SearchStep = { id: undefined, cursor: undefined };

/** A row with its relevance. */
interface Ranked {
  readonly id: string;
  readonly score: number;
}

/** The most relevant row first; of equal ones the newest. */
function byRank(one: Ranked, other: Ranked): number {
  if (one.score !== other.score) return other.score - one.score;
  if (one.id === other.id) return 0;
  return one.id < other.id ? 1 : -1;
}

function parseCursor(cursor: string): Ranked {
  const [score = '', id = ''] = cursor.split(' ', 2);
  if (id !== '' && Number.isFinite(Number(score))) return { id, score: Number(score) };
  throw new Failure('invalid', 'after has to be the `next` of an earlier answer.', {
    field: 'after',
  });
}

/** One search for the rows that have every word of a text. */
class Search {
  readonly #databases: SearchedDatabases;
  readonly #table: string;
  readonly #fields: readonly string[];
  readonly #terms: readonly Term[];
  /** The beginning of a word that the last word of the search is; undefined for no words. */
  readonly #beginning: string | undefined;
  readonly #counts: TableCounts;
  readonly #isByRowAlone: boolean;

  constructor(
    databases: SearchedDatabases,
    { table }: StoredTable,
    { text, isByRowAlone }: { readonly text: string; readonly isByRowAlone: boolean },
  ) {
    this.#databases = databases;
    this.#isByRowAlone = isByRowAlone;
    this.#table = table.name;
    this.#fields = tableIndexes(table).search;
    const words = [...new Set(firstWords(text))];
    this.#beginning = words.pop();
    const terms = words.map((word) => this.#term([word]));
    if (this.#beginning !== undefined) terms.push(this.#term(this.#wordsFrom(this.#beginning)));
    this.#terms = terms;
    this.#counts = tableCounts(databases, table.name);
  }

  get isEmpty(): boolean {
    return this.#terms.length === 0;
  }

  /** The rows that have every term; undefined after each piece of work that finds none. */
  *matches(): Iterable<Ranked | undefined> {
    const [rarest] = this.#terms.toSorted((one, other) => one.rows - other.rows);
    if (rarest === undefined) return;
    const postings = new Map<string, Posting>();
    let read = 0;
    for (const [id, posting] of this.#postings(rarest)) {
      const former = postings.get(id)?.count ?? 0;
      postings.set(id, { ...posting, count: posting.count + former });
      read += 1;
      if (read % searchSliceRows === 0) yield undefined;
      if (postings.size === searchRankedRowsMax) break;
    }
    for (const [id, posting] of postings) {
      const score = this.#score(id, rarest, posting);
      if (score !== undefined) yield { id, score };
      read += 1;
      if (read % searchSliceRows === 0) yield undefined;
    }
  }

  /** The relevance of a row; undefined if it lacks a term. */
  #score(id: string, rarest: Term, found: Posting): number | undefined {
    let score = 0;
    for (const term of this.#terms) {
      const posting = term === rarest ? found : this.#posting(term, id);
      if (posting === undefined) return undefined;
      score += this.#weight(term, posting);
    }
    return score;
  }

  /** The share of a term in the relevance of a row, by BM25. */
  #weight({ rows: rowsWith }: Term, { count, length }: Posting): number {
    if (this.#isByRowAlone) return (count * (occurrences + 1)) / (count + occurrences);
    const { rows, words } = this.#counts;
    const rarity = Math.log(1 + (Math.max(rows, rowsWith) - rowsWith + 0.5) / (rowsWith + 0.5));
    const relativeLength = words === 0 ? 1 : (length * rows) / words;
    const slowed = occurrences * (1 - lengths + lengths * relativeLength);
    return (rarity * count * (occurrences + 1)) / (count + slowed);
  }

  #posting(term: Term, id: string): Posting | undefined {
    const [word = '', ...others] = term.words;
    if (others.length === 0) {
      const value = this.#databases.rowword.get(wordKey(this.#table, word, id));
      return value === undefined ? undefined : unpackWord(value);
    }
    // Among many words, those of the row are found faster than each of them.
    const text = this.#databases.row.get(keyOf(id));
    if (text === undefined) return undefined;
    const { counts, length } = rowWords((storedJson(text) as StoredRow).row, this.#fields);
    const count = term.words.reduce((sum, one) => sum + (counts.get(one) ?? 0), 0);
    return count === 0 ? undefined : { count, length };
  }

  #term(words: readonly string[]): Term {
    let rows = 0;
    for (const word of words) {
      const start = keyPrefix(this.#table, word);
      const limit = searchRankedRowsMax - rows;
      if (limit <= 0) break;
      rows += this.#databases.rowword.getKeysCount({ start, end: prefixEnd(start), limit });
    }
    return { words, rows };
  }

  /** The words of rows that begin with a text, in their order. */
  #wordsFrom(beginning: string): readonly string[] {
    const prefix = keyPrefix(this.#table);
    const end = prefixEnd(Buffer.concat([prefix, Buffer.from(beginning)]));
    let start: Uint8Array = Buffer.concat([prefix, Buffer.from(beginning)]);
    const words: string[] = [];
    while (words.length < searchPrefixWordsMax) {
      const [key] = this.#databases.rowword.getKeys({ start, end, limit: 1 });
      if (key === undefined) break;
      const word = Buffer.from(key).subarray(prefix.length);
      words.push(word.toString('utf8', 0, word.indexOf(0)));
      start = prefixEnd(keyPrefix(this.#table, words.at(-1) ?? ''));
    }
    return words;
  }

  *#postings({ words }: Term): Iterable<readonly [string, Posting]> {
    for (const word of words) {
      const start = keyPrefix(this.#table, word);
      // The newest rows are found first.
      const range = { start: prefixEnd(start), end: start, reverse: true };
      for (const { key, value } of this.#databases.rowword.getRange(range)) {
        const id = Buffer.from(key.subarray(start.length)).toString('latin1');
        yield [id, unpackWord(value)];
      }
    }
  }
}

function* firstWords(text: string): Iterable<string> {
  let left = searchWordsMax;
  for (const word of wordsOf(text)) {
    yield word;
    left -= 1;
    if (left === 0) return;
  }
}
