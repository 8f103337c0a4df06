/** One thing that is wrong with an ini file; `line` counts from 1, 0 where no line is to blame. */
export interface ConfigProblem {
  readonly file: string;
  readonly line: number;
  readonly message: string;
}

/** Something wrong with an ini text, whatever file it came from; `line` as in ConfigProblem. */
export interface LineProblem {
  readonly line: number;
  readonly message: string;
}

const shownCharactersMax = 80;
/**
 * What could write to a terminal or turn its text around: controls, line separators, bidirectional
 * marks.
 */
const notShown = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/**
 * A problem as one line for a person: `file:line: message`, or `file: message` where no line is to
 * blame.
 */
export function problemText({ file, line, message }: ConfigProblem): string {
  return line === 0 ? `${file}: ${message}` : `${file}:${line}: ${message}`;
}

/**
 * A piece of text as a message shows it: in backticks, short, with nothing a terminal would obey.
 */
export function shown(text: string): string {
  const short = text.length > shownCharactersMax ? `${text.slice(0, shownCharactersMax)}…` : text;
  return `\`${short.toWellFormed().replace(notShown, codePoint)}\``;
}

/** Several names in a message: `a`, `b` or `c`. */
export function shownChoice(names: readonly string[]): string {
  const all = names.map(shown);
  const last = all.pop() ?? '';
  return all.length === 0 ? last : `${all.join(', ')} or ${last}`;
}

function codePoint(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`;
}
