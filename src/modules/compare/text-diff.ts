import { loadDiff } from '../../core/values/lazy-packages.ts';

/** Characters of two texts, changed lines that it looks for in them, and for how long. */
const diffTextCharactersMax = 512 * 1_024;
const diffEditsMax = 1_000;
const diffStepsMax = 5_000_000;

/** Characters of a difference, and of each of its lines. */
const diffCharactersMax = 4_000;
const diffLineCharactersMax = 200;

/** The difference of two texts. */
interface TextDifference {
  /** The first line that differs, of each text, shortened. */
  readonly lines: readonly [string, string];
  /**
   * The lines that differ with two around them, as in a unified diff, shortened; undefined for
   * texts that have too little in common.
   */
  readonly diff: string | undefined;
}

/** Compares two different texts line by line; undefined if one is no UTF-8 text. */
export function textDifference(one: Buffer, other: Buffer): TextDifference | undefined {
  const texts = [one.toString('utf8'), other.toString('utf8')] as const;
  if (texts.some((text) => text.includes('\u0000') || text.includes('\ufffd'))) return undefined;
  return { lines: firstLines(...texts), diff: unifiedDiff(...texts) };
}

/** The first lines that differ; it makes no list of lines, of which a text can have millions. */
function firstLines(one: string, other: string): readonly [string, string] {
  const length = Math.min(one.length, other.length);
  let at = 0;
  while (at < length && one.charCodeAt(at) === other.charCodeAt(at)) at += 1;
  const isLineEnd = [one, other].every((text) => at === text.length || text[at] === '\n');
  const start = isLineEnd ? at + 1 : one.slice(0, at).lastIndexOf('\n') + 1;
  return [lineFrom(one, start), lineFrom(other, start)];
}

function lineFrom(text: string, start: number): string {
  const end = text.indexOf('\n', start);
  return shortened(text.slice(start, end === -1 ? undefined : end));
}

function shortened(line: string): string {
  return line.length > diffLineCharactersMax
    ? `${line.slice(0, diffLineCharactersMax).toWellFormed()}…`
    : line;
}

function unifiedDiff(one: string, other: string): string | undefined {
  if (Math.max(one.length, other.length) > diffTextCharactersMax) return undefined;
  // The time grows with lines times edits. A limit of time would let the load decide the answer.
  const lineCount = Math.max(one.split('\n').length, other.split('\n').length);
  const patch = loadDiff().structuredPatch('', '', one, other, '', '', {
    context: 2,
    maxEditLength: Math.min(diffEditsMax, Math.floor(diffStepsMax / lineCount)),
  });
  if (patch === undefined) return undefined;
  let shown = '';
  for (const { oldStart, oldLines, newStart, newLines, lines } of patch.hunks) {
    const head = `@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`;
    for (const line of [head, ...lines]) {
      if (shown.length > diffCharactersMax) return `${shown}…`;
      shown += `${shortened(line)}\n`;
    }
  }
  return shown;
}
