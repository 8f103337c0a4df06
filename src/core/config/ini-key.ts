import { resolve } from 'node:path';
import { isUrl, originPattern } from './addresses.ts';
import { quoted } from './problem.ts';
import { anyText, type Parsed, type ValueParser, yesNo } from './values.ts';

/**
 * The whole description of one key of a section: how to parse its value, its default, and its name
 * in the configuration. Parsing, types, defaults and `check` all use it.
 */
export interface IniKey<T, Field extends string = string> extends KeyOptions<unknown, Field> {
  readonly parse: ValueParser<T>;
  /** The text of the default; undefined for a key that may be unset. */
  readonly defaultText: string | undefined;
  /** Whether the key may be repeated as `key[]`; all its lists are then joined. */
  readonly isList: boolean;
  /** Whether each value needs a line of its own. */
  readonly isOnePerLine?: true;
}

/**
 * The parts of a key besides its parser and default; `Item` is the type of its value, or of an item
 * of its list.
 */
interface KeyOptions<Item, Field extends string> {
  /** What the reference says about it: one or two sentences. */
  readonly about: string;
  /** A value in the reference, which a test validates. */
  readonly example: string;
  /** The other lines that its example needs; an empty text takes one of the section's away. */
  readonly beside?: ExampleLines;
  /** The text of another section that its example needs. */
  readonly besideSection?: string;
  /** The version that brought it, if its section is older. */
  readonly since?: string;
  /** Whether a change needs a restart; otherwise a reload applies it. */
  readonly restart?: true;
  /** Its name in the configuration, if that is not the key in camel case. */
  readonly field?: Field | undefined;
  /**
   * Whether it names a file or folder, and no URL; the folder of the ini file is the base of
   * relative paths.
   */
  readonly isPath?: true;
  /** Checks the file or folder at its absolute path; `refused` says what is wrong with it. */
  readonly checkPath?: (path: string) => Promise<object | undefined>;
  /** Whether the files of its folder are published; it may hold no private file. */
  readonly isPublished?: true;
  /** Whether it brings a certificate, in place of the files of its section. */
  readonly bringsCertificate?: true;
  /** What the file or folder at its path holds, which no mount may serve: `a private key`. */
  readonly holds?: string;
  /** Whether a file with this text holds nothing of that; by default, none does. */
  readonly isOpen?: (text: string) => boolean;
  /** Whether its value is a secret, which no operation shows. */
  readonly isSecret?: true;
  /** The ini text of a value, if that of its parser is another one. */
  write?(value: Item): string;
}

/** Keys by name with their values, as lines of a section; a key with a list has several lines. */
export type ExampleLines = Readonly<Record<string, string | readonly string[]>>;

/** The keys of a section by name. */
export type Keys = Readonly<Record<string, IniKey<unknown>>>;

/** The values of a section's keys. */
export type ValuesOf<S> = { readonly [K in keyof S]: S[K] extends IniKey<infer T> ? T : never };

/** The values of a section's keys by their names in the configuration. */
export type FieldsOf<S> = {
  readonly [K in keyof S & string as FieldName<K, S[K]>]: S[K] extends IniKey<infer T> ? T : never;
};

type FieldName<K extends string, D> =
  D extends IniKey<unknown, infer Field> ? (string extends Field ? CamelCase<K> : Field) : never;

type CamelCase<S extends string> = S extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : S;

/** The path of a file that a key names; a URL stays as it is. */
export function resolvedPath(folder: string, text: string): string {
  return isUrl(text) ? text : resolve(folder, text);
}

/** The name of a key in the configuration. */
export function configFieldName(key: string, { field }: Pick<IniKey<unknown>, 'field'>): string {
  return field ?? key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** The options of a key, with the writer of its parser. */
function written<T, Field extends string>(
  parse: ValueParser<T>,
  options: KeyOptions<T, Field>,
): KeyOptions<T, Field> {
  const write = (value: T): string => parse.write?.(value) ?? '';
  return { ...(parse.write !== undefined && { write }), ...options };
}

/** A key that always has a value. */
export function single<T, const Field extends string>(
  parse: ValueParser<T>,
  defaultText: string,
  options: KeyOptions<T, Field>,
): IniKey<T, Field> {
  return {
    ...written(parse, options),
    parse: unlessEmpty(parse, defaultText),
    defaultText,
    isList: false,
  };
}

/** The key `origin`; `what` says what those of the origin are, `more` follows. */
export function originKey(
  what: string,
  {
    more = '',
    ...options
  }: Partial<KeyOptions<string, 'origin'>> & { readonly more?: string } = {},
): IniKey<string, 'origin'> {
  const wildcards = '`https://*.example.com` for all subdomains, `*` for every origin.';
  return single(originPattern, '*', {
    about: `The origin ${what}; ${wildcards}${more}`,
    example: 'https://www.example.com',
    field: 'origin',
    ...options,
  });
}

/** A key that may be absent or empty, which means the same. */
export function optional<T, const Field extends string>(
  parse: ValueParser<T>,
  options: KeyOptions<T, Field>,
): IniKey<T | undefined, Field> {
  return {
    ...written(parse, options),
    parse: (text) => (text === '' ? { value: undefined } : parse(text)),
    defaultText: undefined,
    isList: false,
  };
}

/** A key that is `yes` or `no`; its example is the one that is not its default. */
export function flagKey<const Field extends string>(
  defaultText: 'yes' | 'no',
  options: Omit<KeyOptions<boolean, Field>, 'example'>,
): IniKey<boolean, Field> {
  return single(yesNo, defaultText, { ...options, example: defaultText === 'yes' ? 'no' : 'yes' });
}

/** A key with the path of a file that may be absent. */
export function fileKey<const Field extends string>(
  options: KeyOptions<string, Field>,
): IniKey<string | undefined, Field> {
  return optional(anyText, { ...options, isPath: true });
}

/** A key with several values, each on a line of its own as `key[]`. */
export function repeated<T, const Field extends string>(
  parse: ValueParser<T>,
  defaultText: string,
  options: KeyOptions<T, Field>,
): IniKey<readonly T[], Field> {
  const each = unlessEmpty(parse, defaultText);
  return {
    ...written(parse, options),
    parse: (text) => {
      const parsed = each(text);
      return 'value' in parsed ? { value: [parsed.value] } : parsed;
    },
    defaultText,
    isList: true,
    isOnePerLine: true,
  };
}

/** A key with any number of values, also none, each on a line of its own as `key[]`. */
export function repeatedIfAny<T, const Field extends string>(
  parse: ValueParser<T>,
  options: KeyOptions<T, Field>,
): IniKey<readonly T[], Field> {
  return {
    ...written(parse, options),
    parse: (text) => {
      if (text === '') return { value: [] };
      const parsed = parse(text);
      return 'value' in parsed ? { value: [parsed.value] } : parsed;
    },
    defaultText: undefined,
    isList: true,
    isOnePerLine: true,
  };
}

/** A key with a list of values separated by commas or spaces; it may be empty. */
export function list<T, const Field extends string>(
  parse: ValueParser<T>,
  defaultText: string,
  options: KeyOptions<T, Field>,
): IniKey<readonly T[], Field> {
  return {
    ...written(parse, options),
    parse: (text) => parseItems(text, parse),
    defaultText,
    isList: true,
  };
}

/** The value of an absent key. */
export function defaultValue<T>({ parse, defaultText }: IniKey<T>): T {
  const parsed = parse(defaultText ?? '');
  if ('refused' in parsed) throw new TypeError(`invalid default: ${defaultText ?? ''}`);
  return parsed.value;
}

function unlessEmpty<T>(parse: ValueParser<T>, defaultText: string): ValueParser<T> {
  return (text) => {
    if (text !== '') return parse(text);
    return {
      refused: `give it a value, or remove the line for the default, ${quoted(defaultText)}`,
    };
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
