import { unsafe } from 'ini';
import { atOnce, type Steps } from '../fair/turns.ts';
import { quoted, type LineProblem } from './problem.ts';

/** One `key = value` line, decoded as the `ini` package does; `${NAME}` is not replaced yet. */
export interface Entry {
  /** Without the `[]` of a repeated key. */
  readonly key: string;
  /** Whether the key was written with `[]`. */
  readonly repeated: boolean;
  readonly text: string;
  readonly line: number;
  /** Whether a `;` or `#` without a space before it ended the value, perhaps by mistake. */
  readonly isCut: boolean;
}

/** A `[section]` with its lines. */
export interface ScannedSection {
  readonly name: string;
  readonly line: number;
  readonly entries: readonly Entry[];
}

/** An ini text as sections with their lines. */
export interface ScannedIni {
  /** Lines before the first section. */
  readonly outside: readonly Entry[];
  readonly sections: readonly ScannedSection[];
  readonly problems: readonly LineProblem[];
}

const header = /^\[([^\]]*)\]\s*(?:[;#].*)?$/;
const quotedValue = /^("(?:[^"\\]|\\.)*"|'[^']*')\s*[;#]/;
const unspacedQuotedValue = /^(?:"(?:[^"\\]|\\.)*"|'[^']*')[;#]/;

/**
 * Splits an ini text into sections and entries with their line numbers, which the `ini` package
 * does not report. That package decodes keys and values (quotes, `\;`, comments). In addition, a
 * comment may follow a quoted value, and the name of a section may contain dots
 * (`[tls.www.example.com]`).
 */
export function scanIni(text: string): ScannedIni {
  return atOnce(scanSteps(text));
}

/** The steps of scanIni: one for each line. */
export function* scanSteps(text: string): Steps<ScannedIni> {
  const problems: LineProblem[] = [];
  const sections: ScannedSection[] = [];
  const outside: Entry[] = [];
  let entries = outside;
  for (const [index, raw] of text.split(/\r\n|\n|\r/).entries()) {
    yield;
    const line = index + 1;
    const content = raw.trim();
    if (content === '' || content.startsWith(';') || content.startsWith('#')) continue;
    if (content.startsWith('[')) {
      entries = [];
      const name = header.exec(content)?.[1]?.trim();
      if (name === undefined) {
        problems.push({ line, message: `${quoted(content)} is not a section: write \`[name]\`` });
      } else if (name === '') {
        problems.push({ line, message: 'a section without a name: write `[name]`' });
      } else {
        sections.push({ name, line, entries });
      }
      continue;
    }
    const entry = scanEntry(content, line);
    if (entry !== undefined) entries.push(entry);
    else problems.push({ line, message: `${quoted(content)} is not of the form \`key = value\`` });
  }
  return { outside, sections, problems };
}

function scanEntry(content: string, line: number): Entry | undefined {
  const equals = content.indexOf('=');
  if (equals < 1) return undefined;
  const rawKey = content.slice(0, equals).trim();
  // A `=` within a comment does not make the text before it a key.
  if (!rawKey.startsWith('"') && /(?:^|[^\\])[;#]/.test(rawKey)) return undefined;
  const key = decode(rawKey);
  const repeated = key.length > 2 && key.endsWith('[]');
  const rawValue = content.slice(equals + 1).trim();
  if (key === '') return undefined;
  return {
    key: repeated ? key.slice(0, -2).trimEnd() : key,
    repeated,
    text: decode(quotedValue.exec(rawValue)?.[1] ?? rawValue),
    line,
    isCut: isCutByComment(rawValue),
  };
}

/** The package parses JSON in single quotes (`'5'` becomes a number); here every value is text. */
function decode(raw: string): string {
  const decoded: unknown = unsafe(raw);
  return typeof decoded === 'string' ? decoded : raw.slice(1, -1);
}

function isCutByComment(rawValue: string): boolean {
  if (quotedValue.test(rawValue)) return unspacedQuotedValue.test(rawValue);
  const isQuoted = ['"', "'"].some(
    (quote) => rawValue.startsWith(quote) && rawValue.endsWith(quote),
  );
  const comment = isQuoted ? null : /(?:^|[^\\])(?:\\\\)*[;#]/.exec(rawValue);
  return comment !== null && !/^(?:[;#]|\s)/.test(comment[0]);
}
