/** A mistake in an ini file; `line` counts from 1, and is 0 for the file as a whole. */
export interface ConfigProblem {
  readonly file: string;
  readonly line: number;
  readonly message: string;
}

/** A mistake in an ini text without the name of a file; `line` as in ConfigProblem. */
export interface LineProblem {
  readonly line: number;
  readonly message: string;
}

const quotedCharactersMax = 80;
/** Characters that could control a terminal: controls, line separators, bidirectional marks. */
const notPrintable = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** A problem as one line of text: `file:line: message`, or `file: message` without a line. */
export function problemText({ file, line, message }: ConfigProblem): string {
  return line === 0 ? `${file}: ${message}` : `${file}:${line}: ${message}`;
}

/** Quotes a text for a message: in backticks, shortened, without control characters. */
export function quoted(text: string): string {
  return `\`${printable(text, quotedCharactersMax)}\``;
}

/** A text with at most some characters, and with escapes in place of control characters. */
export function printable(text: string, charactersMax: number): string {
  const short = text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text;
  return short.toWellFormed().replace(notPrintable, codePoint);
}

/** Quotes several names for a message: `a`, `b` or `c`. */
export function quotedChoice(names: readonly string[]): string {
  const all = names.map(quoted);
  const last = all.pop() ?? '';
  return all.length === 0 ? last : `${all.join(', ')} or ${last}`;
}

function codePoint(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`;
}
