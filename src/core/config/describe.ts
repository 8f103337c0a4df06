import { isCidr } from '../values/network/cidr.ts';
import type { PrivatePlace } from '../values/network/unix-socket.ts';
import type { Json, JsonObject } from '../values/json/json.ts';
import { settingsAt, withSettings } from './assemble.ts';
import type { Config } from './config.ts';
import { configFieldName, type IniKey, type Keys } from './ini-key.ts';
import { type IniSection, sectionKinds, type SectionKind } from './ini-section.ts';
import { escapeVariables } from './variables.ts';

type KeyTexts = Readonly<Record<string, string | readonly string[] | undefined>>;

const plainText = /^[\w./:*@+-]+(?:,? [\w./:*@+-]+)*$/;

/**
 * The configuration as an ini text: every key of docs/design/configuration.md#the-ini-file, also
 * those with their default, with absolute paths. Reading it gives the same configuration.
 */
export function describeConfig(config: Config): string {
  const kinds = sectionKinds(config.sections);
  const texts = kinds
    .filter(({ tail }) => tail === undefined)
    .flatMap((kind) =>
      kind.parts
        .flatMap(
          (part) => part.written?.(config) ?? (part === kind.owner ? ownOf(kind, config) : []),
        )
        .flatMap((settings) => describedSections(kind, settings, { config, kinds })),
    );
  const { variables } = config;
  const first = Object.keys(variables).length > 0 ? [section('variables', variables)] : [];
  return [...first, ...texts].join('\n');
}

/** The settings that a configuration has of a kind of section. */
function ownOf({ owner: { place } }: SectionKind, config: Config): readonly object[] {
  const value = place === undefined ? [] : settingsAt(config, place);
  return (Array.isArray(value) ? value : [value]) as readonly object[];
}

/** The text of a section, and of those with its header fields. */
function describedSections(
  { header, owner, parts, prefix, isNamed }: SectionKind,
  settings: object,
  { config, kinds }: { readonly config: Config; readonly kinds: readonly SectionKind[] },
): readonly string[] {
  const name = isNamed ? String(Reflect.get(settings, 'name')) : '';
  const texts = parts.flatMap((part) => {
    const { place } = part;
    const isOwn = part !== owner && place !== undefined;
    return Object.entries(keyTexts(part.keys, isOwn ? settingsAt(config, place) : settings));
  });
  const linesOf = ({ lines }: IniSection): string =>
    lines?.write((Reflect.get(settings, lines.member) ?? []) as readonly string[]) ?? '';
  const others = kinds.flatMap(({ owner: other, prefix: whose, tail }) => {
    const lines = tail === undefined || whose !== prefix ? '' : linesOf(other);
    return lines === '' ? [] : [`[${prefix}.${name}.${tail}]\n${lines}`];
  });
  const title = header.replace(/<\w+>/, () => name);
  return [section(title, Object.fromEntries(texts)) + linesOf(owner), ...others];
}

/**
 * The configuration as JSON: networks as text, null for keys that are not set. It has no content of
 * other files.
 */
export function configJson({ sections, besides: _, ...config }: Config): JsonObject {
  return sectionKinds(sections).reduce(
    (json, { owner: { place }, parts }) => {
      const hidden = parts.flatMap((part) => part.hidden ?? []);
      if (place === undefined || hidden.length === 0) return json;
      const shown = (settingsAt(json, place) as readonly JsonObject[]).map((settings) =>
        Object.fromEntries(Object.entries(settings).filter(([name]) => !hidden.includes(name))),
      );
      return withSettings(json, place, shown);
    },
    toJson(config) as JsonObject,
  );
}

/** The texts of keys by name, from the configuration's fields for them. */
function keyTexts(keys: Keys, fields: object): KeyTexts {
  const texts = Object.entries(keys).map(([name, key]) => {
    const field = configFieldName(name, key);
    if (!Object.hasOwn(fields, field)) return [name, key.defaultText] as const;
    const value: unknown = Reflect.get(fields, field);
    return [name, value === undefined ? undefined : textsOf(key, value)] as const;
  });
  return Object.fromEntries(texts);
}

function textsOf(key: IniKey<unknown>, value: unknown): string | readonly string[] {
  const write = (one: unknown): string => key.write?.(one) ?? textOf(one);
  if (!key.isList || !Array.isArray(value)) return write(value);
  const items = value.map(write);
  return key.isOnePerLine === true ? items : items.join(', ');
}

function section(name: string, keys: KeyTexts): string {
  const lines = Object.entries(keys).map(([key, value]) => {
    if (typeof value !== 'object') return iniLine(key, value ?? '');
    const [only = ''] = value;
    return value.length === 1
      ? iniLine(key, only)
      : value.map((one) => iniLine(`${key}[]`, one)).join('');
  });
  return `[${name}]\n${lines.join('')}`;
}

/** One line of an ini text; a value with characters of the ini syntax is quoted, as JSON. */
export function iniLine(key: string, value: string): string {
  return iniTemplateLine(key, escapeVariables(value));
}

/** As iniLine, for a text whose `${NAME}` are variables. */
export function iniTemplateLine(key: string, text: string): string {
  const written = text === '' || plainText.test(text) ? text : JSON.stringify(text);
  const name = /^[\w-]+(?:\[\])?$/.test(key) ? key : JSON.stringify(key);
  return `${name} = ${written}`.trimEnd() + '\n';
}

/** The text of a value whose key has no `write`. */
function textOf(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return typeof value === 'object' && value !== null && isPlace(value) ? value.text : String(value);
}

function isPlace(value: object): value is PrivatePlace {
  return isCidr(value) || 'socketPath' in value;
}

function toJson(value: unknown): Json {
  if (value === undefined) return null;
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value !== 'object' || value === null) return value as Json;
  if (isPlace(value)) return value.text;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, toJson(member)]));
}
