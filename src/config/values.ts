import { isScope, scopes, type Scope } from '../model/key.ts';
import { durationMs, sizeBytes } from '../model/units.ts';
import { nearestName } from './nearest.ts';
import { shown, shownChoice } from './problem.ts';

/**
 * Why a value was not taken, as the end of a sentence; `part` is the item at fault where the value
 * is a list.
 */
export interface Refused {
  readonly refused: string;
  readonly part?: string;
}

/** A typed value, or why there is none. */
export type Parsed<T> = { readonly value: T } | Refused;

/**
 * Turns the text of a value, which is well-formed, not empty and free of control characters but
 * tab, into what it stands for.
 */
export type ValueParser<T> = (text: string) => Parsed<T>;

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

/** A whole number within bounds, both included. */
export function wholeNumber(min: number, max: number): ValueParser<number> {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
    if (value >= min && value <= max) return { value };
    return { refused: `write a whole number from ${min} to ${max}` };
  };
}

/** One word, or else what another parser takes. */
export function wordOr<W extends string, T>(word: W, parse: ValueParser<T>): ValueParser<W | T> {
  return (text) => {
    if (text === word) return { value: word };
    const parsed = parse(text);
    return 'value' in parsed ? parsed : { refused: `${parsed.refused}, or ${shown(word)}` };
  };
}

/**
 * A time such as `500ms`, `3s`, `5m`, `2h` or `30d` in milliseconds, within bounds written alike.
 */
export function duration(min: string, max: string): ValueParser<number> {
  const minMs = durationMs(min) ?? 0;
  const maxMs = durationMs(max) ?? Infinity;
  return (text) => {
    const value = durationMs(text);
    if (value === undefined)
      return { refused: 'write a time such as `500ms`, `3s`, `5m` or `30d`' };
    if (value < minMs || value > maxMs) return { refused: `write a time from ${min} to ${max}` };
    return { value };
  };
}

/** A number of bytes: `64KiB`, `256MiB`, `1GiB`, `10MB` or plain. */
export const size: ValueParser<number> = (text) => {
  const value = sizeBytes(text);
  return value === undefined
    ? { refused: 'write a size such as `64KiB`, `256MiB` or `1GiB`' }
    : { value };
};

/** One of some words. */
export function choice<const W extends string>(...words: readonly W[]): ValueParser<W> {
  return (text) => {
    const value = words.find((word) => word === text.toLowerCase());
    return value === undefined ? { refused: `write ${shownChoice(words)}` } : { value };
  };
}

/** A scope of docs/design/failures.md#failures. */
export const scope: ValueParser<Scope> = (text) => {
  if (isScope(text)) return { value: text };
  const nearest = nearestName(text, scopes);
  if (nearest !== undefined) return { refused: `did you mean ${shown(nearest)}?` };
  return { refused: `write scopes out of ${scopes.join(', ')}` };
};

/** Any text, as it is. */
export const anyText: ValueParser<string> = (value) => ({ value });

/** A text of a number of characters at most. */
export function shortText(charactersMax: number): ValueParser<string> {
  return (value) =>
    value.length <= charactersMax ? { value } : { refused: `at most ${charactersMax} characters` };
}

/** Where a claim stands in a token: names with dots between them, as in `realm_access.roles`. */
export const claimPath: ValueParser<readonly string[]> = (text) => {
  const value = text.split('.');
  // A name that is an address, as some issuers have it, is one name whatever dots are in it.
  if (/^https?:\/\//.test(text)) return { value: [text] };
  return value.every((name) => name !== '')
    ? { value }
    : { refused: 'write the name of a claim, such as `roles` or `realm_access.roles`' };
};

/** The name of a file directly in a folder. */
export const plainFileName: ValueParser<string> = (value) =>
  value === '.' || value === '..' || /[/\\]/.test(value)
    ? { refused: 'write the name of a file, without a folder' }
    : { value };

/** The path of a file below a folder, without a `/` before it. */
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
    : { refused: 'a name is made of letters, digits, - and _, at most 64' };
