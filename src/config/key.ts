import { shown } from './problem.ts';
import type { Parsed, ValueParser } from './values.ts';

/**
 * What a section says of one of its keys: how to read its value, the value when it is not there,
 * and how the configuration has it. Everything that is made of a section is made of these.
 */
export interface IniKey<T, Field extends string = string> extends About<unknown, Field> {
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
  /** Whether each value has a line of its own. */
  readonly isRepeated?: true;
}

/** What else there is to say of a key; `Item` is the type of its value, or of one in its list. */
interface About<Item, Field extends string> {
  /** What the configuration calls it, where that is not the key in camel case. */
  readonly field?: Field | undefined;
  /** Whether it names a file or folder: relative paths start at the folder of the ini file. */
  readonly isPath?: true;
  /** Writes a value as the ini file has it, where that is no plain text, number or yes and no. */
  write?(value: Item): string;
}

/** The keys of a section by name. */
export type Keys = Readonly<Record<string, IniKey<unknown>>>;

/** The values of a section's keys. */
export type ValuesOf<S> = { readonly [K in keyof S]: S[K] extends IniKey<infer T> ? T : never };

/** The values of a section's keys under the names that the configuration has for them. */
export type FieldsOf<S> = {
  readonly [K in keyof S & string as FieldName<K, S[K]>]: S[K] extends IniKey<infer T> ? T : never;
};

type FieldName<K extends string, D> =
  D extends IniKey<unknown, infer Field> ? (string extends Field ? CamelCase<K> : Field) : never;

type CamelCase<S extends string> = S extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : S;

/** The name that the configuration has for a key. */
export function fieldName(key: string, { field }: Pick<IniKey<unknown>, 'field'>): string {
  return field ?? key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** A key that always has a value. */
export function single<T, const Field extends string>(
  parse: ValueParser<T>,
  initial: string,
  about: About<T, Field> = {},
): IniKey<T, Field> {
  return { ...about, parse: unlessEmpty(parse, initial), initial, many: false };
}

/** A key that may be absent or empty, which is the same. */
export function optional<T, const Field extends string>(
  parse: ValueParser<T>,
  about: About<T, Field> = {},
): IniKey<T | undefined, Field> {
  return {
    ...about,
    parse: (text) => (text === '' ? { value: undefined } : parse(text)),
    initial: undefined,
    many: false,
  };
}

/** A key with a value a line, `key[]` on each. */
export function repeated<T, const Field extends string>(
  parse: ValueParser<T>,
  initial: string,
  about: About<T, Field> = {},
): IniKey<readonly T[], Field> {
  const each = unlessEmpty(parse, initial);
  return {
    ...about,
    parse: (text) => {
      const parsed = each(text);
      return 'value' in parsed ? { value: [parsed.value] } : parsed;
    },
    initial,
    many: true,
    isRepeated: true,
  };
}

/** A key with a list between commas or spaces; empty for none. */
export function list<T, const Field extends string>(
  parse: ValueParser<T>,
  initial: string,
  about: About<T, Field> = {},
): IniKey<readonly T[], Field> {
  return { ...about, parse: (text) => parseItems(text, parse), initial, many: true };
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
