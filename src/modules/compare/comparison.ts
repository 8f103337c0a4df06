/** The lists of URLs that draft.compare makes itself (docs/how-to/drafts.md). */
export const comparedLists = ['changes', 'sitemap', 'visited'] as const;

/** URLs and keys that one draft.compare answers. */
export const comparedUrlsMax = 1_000;

/** Characters of the URLs of one request: below the body of an operation that reads, as JSON. */
const chunkCharactersMax = 100_000;

/** Parts of a list of URLs or keys, one a line, each short enough for one draft.compare. */
export function comparedChunks(lines: string): readonly string[] {
  const chunks: string[] = [];
  let chunk: string[] = [];
  let characters = 0;
  for (const line of lines.split('\n')) {
    const one = line.trim();
    if (one === '') continue;
    if (chunk.length >= comparedUrlsMax || characters + one.length > chunkCharactersMax) {
      chunks.push(chunk.join('\n'));
      [chunk, characters] = [[], 0];
    }
    chunk.push(one);
    characters += one.length + 1;
  }
  return chunk.length === 0 ? chunks : [...chunks, chunk.join('\n')];
}
