import { knownEventTypes } from '../../core/log/events/event-types.ts';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  nestsDeeper,
} from '../../core/values/json/json.ts';
import { type Scope, isScope } from '../../core/values/key.ts';
import { jsonDepthMax } from '../../core/values/limits.ts';
import { nearestName } from '../../core/values/nearest.ts';
import { KIB } from '../../core/values/units.ts';
import {
  type CompiledTable,
  compileCheck,
  compileTable,
  metaSchemaMistakes,
} from './compiled-table.ts';
import { schemaMistakes } from './schema-check.ts';
import { parseTableEvents } from './table-events.ts';
import { type TableDefinition, tableNameMistake } from './table.ts';

/** Characters of the JSON text of a table's schema. */
const schemaCharactersMax = 1024 * KIB;
const tableFieldsMax = 500;
const fieldNameCharactersMax = 128;

/** Fields that `index` may name; each costs an entry for each row. */
const indexFieldsMax = 32;
const searchFieldsMax = 16;

/** Entries of `read`, `insert` or `edit`. */
const accessEntriesMax = 32;

/** A mistake in the definition of a table. */
export interface DefinitionMistake {
  /** The field of the definition: `schema`, `key`. */
  readonly field: string;
  /** A sentence that names the mistake and a valid value. */
  readonly message: string;
}

/** A definition that is valid, or all of its mistakes. */
type ParsedDefinition =
  | { readonly definition: TableDefinition; readonly compiled: CompiledTable }
  | { readonly mistakes: readonly DefinitionMistake[] };

/** The fields of a definition, in the order of documents. */
export const definitionFields = [
  ...['name', 'schema', 'key', 'index', 'search', 'title', 'owner', 'read', 'insert', 'edit'],
  ...['honeypot', 'events', 'host'],
] as const;

/** Members of the input or answer of an operation, which no field may have for a name. */
const reservedFields = [
  ...['id', 'table', 'seq', 'if_seq', 'as_of', 'vk', '_unknowns_', '_titles_', 'unknowns'],
  'problems',
];

/** Members of inputs in which a key names a row. */
const reservedKeys = [
  ...['where', 'sort', 'text', 'after', 'limit', 'count', 'before', 'txn', 'by', 'from', 'until'],
  ...['confirm', 'from_seq'],
];

/** Parses the fields of a definition; it does not look at other tables or at rows. */
export function parseDefinition(fields: JsonObject): ParsedDefinition {
  const mistakes: DefinitionMistake[] = [];
  const add = (field: string, message: string | undefined): void => {
    if (message !== undefined) mistakes.push({ field, message });
  };
  const { name, schema, host } = fields;
  add('name', typeof name === 'string' ? nameMistake(name) : 'name is missing.');
  if (schema !== undefined || host === undefined) add('schema', rowSchemaMistake(schema));
  for (const field of ['key', 'title', 'owner', 'honeypot', 'host']) {
    const value = fields[field];
    if (value !== undefined && (typeof value !== 'string' || value === '')) {
      add(field, `${field} has to be a text.`);
    }
  }
  for (const field of ['index', 'search', 'read', 'insert', 'edit']) {
    const value = fields[field];
    if (value !== undefined && !isTexts(value)) add(field, `${field} has to be a list of texts.`);
  }
  if (mistakes.length > 0) return { mistakes };
  const definition = normalized(fields);
  let compiled: CompiledTable;
  try {
    compiled = compileTable(definition);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { mistakes: [{ field: 'schema', message: `schema at ${why}` }] };
  }
  mistakes.push(...fieldMistakes(compiled), ...accessMistakes(definition));
  mistakes.push(...hostMistakes(definition));
  const { events } = fields;
  if (events === undefined || (schema === undefined && host !== undefined)) {
    return mistakes.length > 0 ? { mistakes } : { definition, compiled };
  }
  const parsed = parseTableEvents(events, compiled.fields);
  if ('mistakes' in parsed) for (const message of parsed.mistakes) add('events', message);
  if (mistakes.length > 0 || 'mistakes' in parsed) return { mistakes };
  return { definition: { ...definition, events: parsed.events }, compiled };
}

function nameMistake(name: string): string | undefined {
  const mistake = tableNameMistake(name);
  return mistake && `name cannot be ${JSON.stringify(name.slice(0, 80))}: ${mistake}.`;
}

function isTexts(value: Json): value is readonly string[] {
  if (typeof value === 'string') return true;
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

/** The definition with its lists as lists, without empty ones. */
function normalized(fields: JsonObject): TableDefinition {
  const entries = definitionFields.flatMap((name) => {
    const value = fields[name];
    if (value === undefined) return [];
    const isList = ['index', 'search', 'read', 'insert', 'edit'].includes(name);
    if (!isList) return [[name, value] as const];
    const items = typeof value === 'string' ? value.split(/[\s,]+/) : (value as readonly string[]);
    const list = [...new Set(items.filter((one) => one !== ''))];
    return list.length === 0 ? [] : [[name, list] as const];
  });
  return Object.fromEntries(entries) as unknown as TableDefinition;
}

function schemaMistake(schema: Json | undefined): string | undefined {
  if (!isJsonObject(schema)) return 'schema is missing: the JSON Schema of an object.';
  if (nestsDeeper(schema, jsonDepthMax)) return `schema nests deeper than ${jsonDepthMax} levels.`;
  if (JSON.stringify(schema).length > schemaCharactersMax) {
    return `schema has more than ${schemaCharactersMax} characters.`;
  }
  const [mistake] = [...schemaMistakes(schema), ...metaSchemaMistakes(schema)];
  if (mistake !== undefined) return `schema at ${mistake.at || '/'}: ${mistake.message}`;
  return schema.type === undefined || schema.type === 'object'
    ? undefined
    : 'schema has to be the schema of an object: "type": "object".';
}

/** The mistake of a schema as that of the rows of a table. */
function rowSchemaMistake(schema: Json | undefined): string | undefined {
  const mistake = schemaMistake(schema);
  if (mistake !== undefined || !isJsonObject(schema)) return mistake;
  const { properties = {} } = schema;
  if (!isJsonObject(properties)) return 'properties of schema are the fields of a row, by name.';
  if (schema.patternProperties !== undefined) {
    return 'schema has patternProperties: list the fields of a row in properties.';
  }
  const names = Object.keys(properties);
  if (names.length > tableFieldsMax) return `schema has more than ${tableFieldsMax} properties.`;
  const reserved = names.find((one) => reservedFields.includes(one));
  if (reserved !== undefined) {
    const others = reservedFields.join(', ');
    return `schema has a property ${reserved}: these names are Waymark's own: ${others}.`;
  }
  const long = names.find((one) => one === '' || one.length > fieldNameCharactersMax);
  if (long === undefined) return undefined;
  return `schema: the name of a property has 1 to ${fieldNameCharactersMax} characters.`;
}

/**
 * What is wrong with an event type of the ini file, or with the schema of its data; undefined for
 * nothing.
 */
export function eventTypeMistake(type: string, schema: JsonObject): string | undefined {
  if (knownEventTypes.some((known) => known.type === type && known.own)) {
    return 'Waymark raises this event itself. Use another type.';
  }
  const mistake = schemaMistake(schema);
  if (mistake !== undefined) return mistake;
  try {
    compileCheck(schema);
    return undefined;
  } catch (error) {
    return `schema at ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Mistakes of the definition's fields that name fields of the rows. */
function fieldMistakes(compiled: CompiledTable): readonly DefinitionMistake[] {
  const { definition, fields } = compiled;
  const { key, index = [], search = [], title, owner, honeypot, host } = definition;
  // The schema of a remote table may not be known yet.
  if (definition.schema === undefined && host !== undefined) return [];
  const check = (field: string, names: readonly string[], types: readonly string[], what: string) =>
    names.flatMap((name) => {
      const message = useMistake(compiled, { field, name, types, what });
      return message === undefined ? [] : [{ field, message }];
    });
  const scalars = ['string', 'number', 'integer', 'boolean', 'null'];
  const one = (name: string | undefined): readonly string[] => (name === undefined ? [] : [name]);
  return [
    ...check('key', one(key), ['string', 'integer', 'number'], 'a string, an integer or a number'),
    ...check('index', index, scalars, 'no list and no object'),
    ...check('search', search, ['string', 'null'], 'a string'),
    ...check('title', one(title), scalars, 'no list and no object'),
    ...check('owner', one(owner), ['string', 'null'], 'a string'),
    ...tooMany('index', index, indexFieldsMax),
    ...tooMany('search', search, searchFieldsMax),
    ...(key !== undefined && reservedKeys.includes(key)
      ? [{ field: 'key', message: `key cannot be ${key}: the inputs of operations use this name.` }]
      : []),
    ...(honeypot !== undefined && (fields.has(honeypot) || reservedFields.includes(honeypot))
      ? [{ field: 'honeypot', message: `honeypot ${honeypot} has to be no field of the rows.` }]
      : []),
    ...[...fields.values()].flatMap(({ name, formerName }) =>
      formerName !== undefined && fields.has(formerName)
        ? [{ field: 'schema', message: `${name} has x-renamed-from ${formerName}, which exists.` }]
        : [],
    ),
  ];
}

/** Why a field of the rows cannot be used as a key, index and so on. */
function useMistake(
  { fields }: CompiledTable,
  use: {
    readonly field: string;
    readonly name: string;
    readonly types: readonly string[];
    readonly what: string;
  },
): string | undefined {
  const { field, name, types, what } = use;
  const found = fields.get(name);
  if (found === undefined) {
    const nearest = nearestName(name, [...fields.keys()]);
    const hint = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
    return `${field} names ${name}, which the schema does not have.${hint}`;
  }
  if (found.isWriteOnly) return `${field} names ${name}, which is writeOnly: it would be shown.`;
  if (found.types === undefined) return `${field} names ${name}: its schema needs a type, ${what}.`;
  const isUsable = [...found.types].every((type) => types.includes(type));
  return isUsable ? undefined : `${field} names ${name}, which has to be ${what}.`;
}

function tooMany(
  field: string,
  names: readonly string[],
  max: number,
): readonly DefinitionMistake[] {
  return names.length > max ? [{ field, message: `${field} names more than ${max} fields.` }] : [];
}

/** The words of `read`, `insert` and `edit` besides scopes. */
const openAccess = ['anonymous', 'user'] as const;

function accessMistakes(definition: TableDefinition): readonly DefinitionMistake[] {
  return (['read', 'insert', 'edit'] as const).flatMap((field): readonly DefinitionMistake[] => {
    const entries = definition[field] ?? [];
    if (entries.length > accessEntriesMax) {
      return [{ field, message: `${field} has more than ${accessEntriesMax} entries.` }];
    }
    const isKnown = (one: string): boolean =>
      isScope(one) || (openAccess as readonly string[]).includes(one);
    const unknown = entries.find((one) => !isKnown(one));
    if (unknown !== undefined) {
      const nearest = nearestName(unknown, [...openAccess, ...commonScopes]);
      const hint = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
      const message = `${field} names ${unknown}: write scopes, anonymous or user.${hint}`;
      return [{ field, message }];
    }
    if (!entries.includes('user') || definition.owner !== undefined) return [];
    const message = `${field} names user: owner has to name the field with the user of a row.`;
    return [{ field, message }];
  });
}

const commonScopes: readonly Scope[] = ['record.read', 'record.write', 'admin', 'read', 'design'];

function hostMistakes(definition: TableDefinition): readonly DefinitionMistake[] {
  const { host } = definition;
  if (host === undefined) return [];
  // The host gets the key of this server, so it does not know the users of this server.
  const own = (['read', 'insert', 'edit'] as const).find((one) =>
    definition[one]?.includes('user'),
  );
  if (own !== undefined) {
    return [{ field: own, message: `${own} names user, which a table with a host cannot have.` }];
  }
  const { protocol, username, password } = URL.canParse(host) ? new URL(host) : noUrl;
  const isWeb = ['http:', 'https:', 'ws:', 'wss:'].includes(protocol);
  if (isWeb && username === '' && password === '') return [];
  const message = 'host has to be a URL without a user: https://example.com/svc1/ws.';
  return [{ field: 'host', message }];
}

const noUrl = { protocol: '', username: '', password: '' } as const;
