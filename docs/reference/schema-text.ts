import { isJsonObject, type Json, type JsonObject } from '../../src/core/values/json/json.ts';

/** A row of a table of members. */
interface MemberRow {
  readonly name: string;
  readonly type: string;
  readonly meaning: string;
}

/** The members that a JSON Schema of an object describes, as a table; a sentence if it has none. */
export function membersTable(schema: JsonObject): string {
  const rows = memberRows(schema, '');
  if (rows.length === 0) return 'It has no fixed members.';
  return markdownTable(
    ['name', 'value', 'meaning'],
    rows.map(({ name, type, meaning }) => [`\`${name}\``, type, meaning]),
  );
}

/** A table of Markdown; cells may contain any text without line breaks. */
export function markdownTable(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n');
}

/** The paths of all members that a schema describes and that have no description. */
export function undescribed(schema: JsonObject): readonly string[] {
  return memberRows(schema, '')
    .filter(({ meaning }) => meaning === '')
    .map(({ name }) => name);
}

function memberRows(schema: JsonObject, prefix: string): readonly MemberRow[] {
  const properties = Object.entries((schema.properties ?? {}) as Readonly<Record<string, Json>>);
  const required = (schema.required ?? []) as readonly Json[];
  return properties.flatMap(([name, member]) => {
    if (!isJsonObject(member)) return [];
    const path = `${prefix}${name}`;
    const words = [
      required.includes(name) ? 'Required.' : '',
      typeof member.description === 'string' ? asSentence(member.description) : '',
      limitsText(member),
    ];
    return [
      { name: path, type: typeText(member), meaning: words.filter((one) => one !== '').join(' ') },
      ...innerSchemas(member).flatMap(([schemaOf, suffix]) =>
        memberRows(schemaOf, `${path}${suffix}.`),
      ),
    ];
  });
}

/** The schemas of objects within the schema of a member. */
function innerSchemas(member: JsonObject): readonly (readonly [JsonObject, string])[] {
  const choices = [member, ...alternatives(member)];
  return choices.flatMap((one): (readonly [JsonObject, string])[] => {
    if (isJsonObject(one.properties)) return [[one, '']];
    const { items } = one;
    if (!isJsonObject(items) || !isJsonObject(items.properties)) return [];
    return [[items, '[]']];
  });
}

function alternatives({ oneOf, anyOf }: JsonObject): readonly JsonObject[] {
  return [oneOf, anyOf].flatMap((list) =>
    Array.isArray(list) ? (list as readonly Json[]).filter(isJsonObject) : [],
  );
}

function typeText(schema: JsonObject): string {
  const { type, enum: values, const: constant, items } = schema;
  if (constant !== undefined) return `\`${JSON.stringify(constant)}\``;
  if (Array.isArray(values)) {
    const shown = (values as readonly string[]).filter((value: Json) => value !== null);
    return shown.map((value) => `\`${value}\``).join(', ');
  }
  if (Array.isArray(type)) return (type as readonly string[]).map(wordOf).join(' or ');
  if (type === 'array') return isJsonObject(items) ? `list of ${typeText(items)}` : 'list';
  if (typeof type === 'string') return wordOf(type);
  const choices = [...new Set(alternatives(schema).map(typeText))];
  return choices.length === 0 ? 'any' : choices.join(' or ');
}

function wordOf(type: string): string {
  const words: Readonly<Record<string, string>> = { string: 'text', integer: 'whole number' };
  return words[type] ?? type;
}

function limitsText(schema: JsonObject): string {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, format, pattern } = schema;
  const range = (min: Json | undefined, max: Json | undefined, unit: string): string => {
    if (max === undefined) return '';
    return `${min === undefined ? 'At most' : `${JSON.stringify(min)} to`} ${JSON.stringify(max)}${unit}.`;
  };
  return [
    range(minimum, maximum, ''),
    range(minLength, maxLength, ' characters'),
    range(minItems, maxItems, ' items'),
    format === 'date-time' ? 'ISO 8601 date-time.' : '',
    typeof pattern === 'string' && pattern.length < 60 ? `Pattern \`${pattern}\`.` : '',
  ]
    .filter((one) => one !== '')
    .join(' ');
}

function asSentence(text: string): string {
  const first = text.slice(0, 1).toUpperCase() + text.slice(1);
  return /[.…]$/.test(first) ? first : `${first}.`;
}
