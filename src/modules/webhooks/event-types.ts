import { type KnownEventType, knownEventTypes } from '../../core/log/events/event-types.ts';
import type { Reads } from '../../core/log/store.ts';
import { Failure, type Problem } from '../../core/values/failure.ts';
import { exampleOf } from '../../core/values/json/example.ts';
import { type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import { nearestName } from '../../core/values/nearest.ts';
import { type ValueMistake, compileCheck } from '../tables/compiled-table.ts';
import { anyEvent } from './hook.ts';
import { storedTables } from '../tables/log/family.ts';

/** An event type of the ini file (`[event.<name>]`), as data. */
export interface DeclaredEventType {
  readonly name: string;
  /** One sentence: when the event occurs. */
  readonly summary?: string | undefined;
  /** JSON Schema (2020-12) of the event's data. */
  readonly schema: JsonObject;
}

/** Where an event type is known from: Waymark, the ini file, or a table that raises it. */
export const eventTypeSources = ['waymark', 'server.ini', 'table'] as const;

/** An event type, as event.types lists it. */
export interface ListedEventType extends KnownEventType {
  readonly source: (typeof eventTypeSources)[number];
}

/** The event types of a server. */
export interface EventTypes {
  /** All types: those of Waymark, of the ini file, and of tables. */
  list(): readonly ListedEventType[];
  /**
   * Throws `invalid`, with all mistakes, for data that breaks the schema of a type of the ini file.
   */
  requireFit(type: string, data: JsonObject): void;
  /** Whether the ini file has the type. */
  isDeclared(type: string): boolean;
  /**
   * The problem of a type that nothing names: of one that is nearly a known type, and of any other
   * where the ini file or a table has types. A server without such types may have any.
   */
  problemOf(type: string, field: 'type' | 'event'): Problem | undefined;
}

/** Makes the EventTypes of a configuration. Schemas are compiled when they are first needed. */
export function createEventTypes(
  declared: readonly DeclaredEventType[],
  reads: Pick<Reads, 'of'>,
): EventTypes {
  const byName = new Map(declared.map((one) => [one.name, one]));
  const checks = new Map<string, Check>();
  const checkOf = ({ name, schema }: DeclaredEventType): Check => {
    const check = checks.get(name) ?? compileCheck(schema);
    checks.set(name, check);
    return check;
  };
  let fixed: readonly ListedEventType[] | undefined;
  const others = knownEventTypes.filter(({ type }) => !byName.has(type));
  const isFixed = (type: string): boolean =>
    byName.has(type) || others.some((one) => one.type === type);

  return {
    list() {
      fixed ??= [
        ...others.map((one) => ({ ...one, source: 'waymark' as const })),
        ...declared.map((one) => listedType(one, checkOf(one))),
      ];
      return [...fixed, ...raisedByTables(reads).filter(({ type }) => !isFixed(type))];
    },
    isDeclared: (type) => byName.has(type),
    requireFit(type, data) {
      const found = byName.get(type);
      const mistakes = found === undefined ? [] : checkOf(found)(data);
      if (mistakes.length > 0) throw unfit(type, mistakes);
    },
    problemOf(type, field) {
      if (type === anyEvent || isFixed(type)) return undefined;
      const ofTables = raisedByTables(reads).map((one) => one.type);
      if (ofTables.includes(type)) return undefined;
      const own = [...byName.keys(), ...ofTables];
      const suggestion = nearestName(type, [...own, ...others.map((one) => one.type)]);
      if (suggestion === undefined && own.length === 0) return undefined;
      const hint =
        suggestion === undefined ? 'event.types has those.' : `Did you mean ${suggestion}?`;
      const message = `No event type ${type} is known. ${hint}`;
      return {
        ...{ field, reason: 'no_effect', message },
        ...(suggestion !== undefined && { suggestion }),
      };
    },
  };
}

/** Returns the mistakes of an event's data. */
type Check = (data: JsonObject) => readonly ValueMistake[];

function listedType({ name, summary, schema }: DeclaredEventType, check: Check): ListedEventType {
  const { description, title } = schema;
  const texts = [summary, description, title].filter((one) => typeof one === 'string');
  const [first = 'An application inserts it.'] = texts;
  const shown = withExample(schema, check);
  return { type: name, summary: first, own: false, schema: shown, source: 'server.ini' };
}

/** The schema with an example, which people send as a first event. */
function withExample(schema: JsonObject, check: Check): JsonObject {
  if (Array.isArray(schema.examples) && schema.examples.length > 0) return schema;
  const example = exampleOf(schema);
  const isValid = isJsonObject(example) && check(example).length === 0;
  return isValid ? { ...schema, examples: [example] } : schema;
}

/** The types that tables raise (docs/design/webhooks.md#events-of-tables). */
function raisedByTables(reads: Pick<Reads, 'of'>): readonly ListedEventType[] {
  const types = new Map<string, ListedEventType>();
  for (const { table } of reads.of(storedTables).tablesAfter('')) {
    for (const type of Object.keys(table.events ?? {})) {
      if (types.has(type)) continue;
      const summary = `A row of the table ${table.name} has changed.`;
      types.set(type, {
        type,
        summary,
        own: false,
        schema: rowSchema(table.name),
        source: 'table',
      });
    }
  }
  return [...types.values()];
}

function rowSchema(table: string): JsonObject {
  const text = { type: 'string' };
  return {
    type: 'object',
    required: ['table', 'id', 'field'],
    properties: { table: text, id: text, key: {}, field: text, value: {}, previous: {} },
    examples: [{ table, id: '0198…', field: 'stock', value: 3, previous: 5 }],
  };
}

function unfit(type: string, mistakes: readonly ValueMistake[]): Failure {
  const problems = mistakes.map(({ field, reason, message }): Problem => {
    const path = field === '' ? 'data' : `data.${field}`;
    return { field: path, reason, message: message.replace(field, path) };
  });
  const [first] = problems;
  const more = problems.length > 1 ? ` ${problems.length - 1} more.` : '';
  const message = `${first?.message ?? ''}${more} The schema of [event.${type}] decides.`;
  return new Failure('invalid', message, { field: first?.field ?? 'data', problems });
}
