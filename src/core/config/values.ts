import { isScope, scopes, type Scope } from '../values/key.ts';
import { durationMs, durationText, sizeBytes, sizeText } from '../values/units.ts';
import { nearestName } from '../values/nearest.ts';
import { quoted, quotedChoice } from './problem.ts';

/** Why a value is invalid, as the end of a sentence; `part` is the invalid item of a list. */
export interface Refused {
  readonly refused: string;
  readonly part?: string;
  /** The system has refused to read what is there, so a later attempt may succeed. */
  readonly isUnread?: true;
}

/** A typed value, or why the text is invalid. */
export type Parsed<T> = { readonly value: T } | Refused;

/**
 * Parses the text of a value, which is well-formed and has no control character except tabs. Only
 * the parser of a whole key may get an empty text.
 */
export interface ValueParser<T> {
  (text: string): Parsed<T>;
  /** The ini text of a value, where `check` does not write it as it is. */
  write?(value: T): string;
}

/** A parser whose values have another text than their own. */
export function written<T>(parse: ValueParser<T>, write: (value: T) => string): ValueParser<T> {
  return Object.assign(parse, { write });
}

const switches: Readonly<Record<string, boolean>> = {
  yes: true,
  true: true,
  on: true,
  1: true,
  no: false,
  false: false,
  off: false,
  0: false,
};
/** `yes` or `no`, also true/false, on/off, 1/0. */
export const yesNo: ValueParser<boolean> = (text) => {
  const name = text.toLowerCase();
  const value = Object.hasOwn(switches, name) ? switches[name] : undefined;
  return value === undefined ? { refused: 'write `yes` or `no`' } : { value };
};

/** A whole number from `min` to `max`. */
export function wholeNumber(min: number, max: number): ValueParser<number> {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
    if (value >= min && value <= max) return { value };
    return { refused: `write a whole number from ${min} to ${max}` };
  };
}

/** A fixed word, or a value of another parser. */
export function wordOr<W extends string, T>(word: W, parse: ValueParser<T>): ValueParser<W | T> {
  return (text) => {
    if (text === word) return { value: word };
    const parsed = parse(text);
    return 'value' in parsed ? parsed : { refused: `${parsed.refused}, or ${quoted(word)}` };
  };
}

/** A time such as `500ms`, `3s`, `5m`, `2h` or `30d`, from `min` to `max`, in milliseconds. */
export function duration(min: string, max: string): ValueParser<number> {
  const minMs = durationMs(min) ?? 0;
  const maxMs = durationMs(max) ?? Infinity;
  return written((text) => {
    const value = durationMs(text);
    if (value === undefined)
      return { refused: 'write a time such as `500ms`, `3s`, `5m` or `30d`' };
    if (value < minMs || value > maxMs) return { refused: `write a time from ${min} to ${max}` };
    return { value };
  }, durationText);
}

/** A size such as `64KiB`, `256MiB`, `1GiB`, `10MB` or `4096`, in bytes. */
export const size = written<number>((text) => {
  const value = sizeBytes(text);
  return value === undefined
    ? { refused: 'write a size such as `64KiB`, `256MiB` or `1GiB`' }
    : { value };
}, sizeText);

/** One of some words. */
export function choice<const W extends string>(...words: readonly W[]): ValueParser<W> {
  return (text) => {
    const value = words.find((word) => word === text.toLowerCase());
    return value === undefined ? { refused: `write ${quotedChoice(words)}` } : { value };
  };
}

/** A scope of docs/design/failures.md#failures. */
export const scope: ValueParser<Scope> = (text) => {
  if (isScope(text)) return { value: text };
  const nearest = nearestName(text, scopes);
  if (nearest !== undefined) return { refused: `did you mean ${quoted(nearest)}?` };
  return { refused: `write one or more of ${scopes.join(', ')}` };
};

/** Any text, unchanged. */
export const anyText: ValueParser<string> = (value) => ({ value });

/** A text of at most `charactersMax` characters. */
export function shortText(charactersMax: number): ValueParser<string> {
  return (value) =>
    value.length <= charactersMax
      ? { value }
      : { refused: `write at most ${charactersMax} characters` };
}

/** The path to a claim of a token: names separated by dots, such as `realm_access.roles`. */
export const claimPath = written<readonly string[]>(
  (text) => {
    const value = text.split('.');
    // Some issuers name claims by URLs: such a name is one name, with its dots.
    if (/^https?:\/\//.test(text)) return { value: [text] };
    return value.every((name) => name !== '')
      ? { value }
      : { refused: 'write the name of a claim, such as `roles` or `realm_access.roles`' };
  },
  (names) => names.join('.'),
);

/** The path of a file below a folder, without a leading `/`. */
export const pathBelow: ValueParser<string> = (text) => {
  const value = text.replace(/^\/+/, '');
  return /(?:^|\/)(?:\.{0,2})(?:\/|$)|\\/.test(value)
    ? { refused: 'write the path of a file below `root`' }
    : { value };
};

/** The name of a section: letters, digits, `-` and `_`. */
export const plainName: ValueParser<string> = (value) =>
  /^[A-Za-z0-9_-]{1,64}$/.test(value)
    ? { value }
    : { refused: 'a name has 1 to 64 letters, digits, - or _' };
