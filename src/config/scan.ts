import { unsafe } from 'ini';
import { shown, type LineProblem } from './problem.ts';

/**
 * One `key = value` line, decoded as the `ini` package does; `${ENV}` still stands as it was
 * written.
 */
export interface Entry {
  /** Without the `[]` of a repeated key. */
  readonly key: string;
  /** Whether the key was written with `[]`. */
  readonly repeated: boolean;
  readonly text: string;
  readonly line: number;
  /**
   * Whether a `;` or `#` without a space before it ended the value: perhaps not meant as a comment.
   */
  readonly cut: boolean;
}

/** A `[section]` with its lines. */
export interface ScannedSection {
  readonly name: string;
  readonly line: number;
  readonly entries: readonly Entry[];
}

/**
 * An ini text cut up: what stands before the first header, the sections, the lines that are
 * nothing.
 */
interface ScannedIni {
  readonly homeless: readonly Entry[];
  readonly sections: readonly ScannedSection[];
  readonly problems: readonly LineProblem[];
}

const header = /^\[([^\]]*)\]\s*(?:[;#].*)?$/;
const quoted = /^("(?:[^"\\]|\\.)*"|'[^']*')\s*[;#]/;
const cutQuoted = /^(?:"(?:[^"\\]|\\.)*"|'[^']*')[;#]/;

/**
 * Cuts an ini text into sections and entries and knows the line of each, which the `ini` package
 * does not say; keys and values are decoded by that package (quotes, `\;`, comments), but a comment
 * may also follow a quoted value, and a section keeps its name whole (`[tls.www.example.com]`).
 */
export function scanIni(text: string): ScannedIni {
  const problems: LineProblem[] = [];
  const sections: ScannedSection[] = [];
  const homeless: Entry[] = [];
  let entries = homeless;
  for (const [index, raw] of text.split(/\r\n|\n|\r/).entries()) {
    const line = index + 1;
    const content = raw.trim();
    if (content === '' || content.startsWith(';') || content.startsWith('#')) continue;
    if (content.startsWith('[')) {
      entries = [];
      const name = header.exec(content)?.[1]?.trim();
      if (name === undefined) {
        problems.push({ line, message: `${shown(content)} is not a section: write \`[name]\`` });
      } else if (name === '') {
        problems.push({ line, message: 'a section without a name: write `[name]`' });
      } else {
        sections.push({ name, line, entries });
      }
      continue;
    }
    const entry = scanEntry(content, line);
    if (entry !== undefined) entries.push(entry);
    else problems.push({ line, message: `${shown(content)} is not of the form \`key = value\`` });
  }
  return { homeless, sections, problems };
}

function scanEntry(content: string, line: number): Entry | undefined {
  const equals = content.indexOf('=');
  if (equals < 1) return undefined;
  const rawKey = content.slice(0, equals).trim();
  // A comment that holds a `=` does not make the word before it a key.
  if (!rawKey.startsWith('"') && /(?:^|[^\\])[;#]/.test(rawKey)) return undefined;
  const key = decode(rawKey);
  const repeated = key.length > 2 && key.endsWith('[]');
  const rawValue = content.slice(equals + 1).trim();
  if (key === '') return undefined;
  return {
    key: repeated ? key.slice(0, -2).trimEnd() : key,
    repeated,
    text: decode(quoted.exec(rawValue)?.[1] ?? rawValue),
    line,
    cut: isCut(rawValue),
  };
}

/**
 * The package also reads JSON in single quotes (`'5'` is a number to it); here every value is text.
 */
function decode(raw: string): string {
  const decoded: unknown = unsafe(raw);
  return typeof decoded === 'string' ? decoded : raw.slice(1, -1);
}

function isCut(rawValue: string): boolean {
  if (quoted.test(rawValue)) return cutQuoted.test(rawValue);
  const isQuoted = ['"', "'"].some(
    (quote) => rawValue.startsWith(quote) && rawValue.endsWith(quote),
  );
  const comment = isQuoted ? null : /(?:^|[^\\])(?:\\\\)*[;#]/.exec(rawValue);
  return comment !== null && !/^(?:[;#]|\s)/.test(comment[0]);
}
