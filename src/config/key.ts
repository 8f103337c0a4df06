import { shown } from './problem.ts';
import type { Parsed, ValueParser } from './values.ts';

/**
 * What a section says of one of its keys: how to read its value, and the value when it is not
 * there.
 */
export interface IniKey<T> {
  readonly parse: ValueParser<T>;
  /**
   * The value of an absent or wrong key, as it would be written; undefined for a key that may be
   * unset.
   */
  readonly initial: string | undefined;
  /**
   * Whether the key may stand several times, as `key[]`; its values are then lists that are joined.
   */
  readonly many: boolean;
}

/** The keys of a section by name. */
export type Keys = Readonly<Record<string, IniKey<unknown>>>;

/** The values of a section's keys. */
export type ValuesOf<S> = { readonly [K in keyof S]: S[K] extends IniKey<infer T> ? T : never };

/** A key that always has a value. */
export function single<T>(parse: ValueParser<T>, initial: string): IniKey<T> {
  return { parse: unlessEmpty(parse, initial), initial, many: false };
}

/** A key that may be absent or empty, which is the same. */
export function optional<T>(parse: ValueParser<T>): IniKey<T | undefined> {
  return {
    parse: (text) => (text === '' ? { value: undefined } : parse(text)),
    initial: undefined,
    many: false,
  };
}

/** A key with a value a line, `key[]` on each. */
export function repeated<T>(parse: ValueParser<T>, initial: string): IniKey<readonly T[]> {
  const each = unlessEmpty(parse, initial);
  return {
    parse: (text) => {
      const parsed = each(text);
      return 'value' in parsed ? { value: [parsed.value] } : parsed;
    },
    initial,
    many: true,
  };
}

/** A key with a list between commas or spaces; empty for none. */
export function list<T>(parse: ValueParser<T>, initial: string): IniKey<readonly T[]> {
  return { parse: (text) => parseItems(text, parse), initial, many: true };
}

/** The value that an absent key has. */
export function initialValue<T>({ parse, initial }: IniKey<T>): T {
  const parsed = parse(initial ?? '');
  if ('refused' in parsed) throw new TypeError(`a default is wrong: ${initial ?? ''}`);
  return parsed.value;
}

function unlessEmpty<T>(parse: ValueParser<T>, initial: string): ValueParser<T> {
  return (text) => {
    if (text !== '') return parse(text);
    return { refused: `give it a value, or leave the line out for ${shown(initial)}` };
  };
}

function parseItems<T>(text: string, parse: ValueParser<T>): Parsed<readonly T[]> {
  const values: T[] = [];
  for (const part of text.split(/[\s,]+/)) {
    if (part === '') continue;
    const parsed = parse(part);
    if ('refused' in parsed) return { ...parsed, part };
    values.push(parsed.value);
  }
  return { value: values };
}
