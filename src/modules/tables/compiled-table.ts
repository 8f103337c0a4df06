import type { Ajv2020, AnySchema, ErrorObject, ValidateFunction } from 'ajv/dist/2020.js';
import { formats, schemaDocuments, wordsOfAjv } from '../../core/operations/ajv.ts';
import type { ProblemReason } from '../../core/values/failure.ts';
import { hasExactNumber, withStandIns } from '../../core/values/json/exact-number.ts';
import { type Json, type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import { jsonDigest } from '../../core/values/json/prepared-json.ts';
import { loadAjv2020 } from '../../core/values/lazy-packages.ts';
import { linearPattern } from '../../core/values/linear-pattern.ts';
import { type ExactNumbers, compareExactly, isUniqueList } from './exact-schema.ts';
import { pointerPart, typesOf, writeOnlyFields } from './schema-check.ts';
import type { TableDefinition } from './table.ts';

/** Compiled schemas that the process has ready besides those of its tables. */
const compiledSchemasMax = 8;

/** Why a value is not valid for its field. */
export interface ValueMistake {
  /** The path of the mistake: `address.city`. */
  readonly field: string;
  readonly reason: ProblemReason;
  /**
   * A sentence, without the value itself, because the caller may not be allowed to read the field.
   */
  readonly message: string;
}

/** A field of a table's rows. */
export interface TableField {
  readonly name: string;
  readonly schema: JsonObject;
  /** The types of its values; undefined if the schema permits any. */
  readonly types: ReadonlySet<string> | undefined;
  /** Whether the field, or a part of it, is `writeOnly`: no operation shows it. */
  readonly isWriteOnly: boolean;
  /** The table that its values refer to (`x-table`). */
  readonly refersTo: string | undefined;
  /** The name that the field had before (`x-renamed-from`). */
  readonly formerName: string | undefined;
  /** The first mistake of a value; undefined for a valid one. */
  mistake(value: Json): ValueMistake | undefined;
}

/** A table's definition, ready to check rows. */
export interface CompiledTable {
  readonly definition: TableDefinition;
  /** The fields of its rows, in the order of the schema. */
  readonly fields: ReadonlyMap<string, TableField>;
  /** Fields that every row has: those of `required`, and the key. */
  readonly required: readonly string[];
  /** The field that other tables show for a row that they refer to. */
  readonly title: string | undefined;
  /** The first mistake of a row with single fields that are all valid. */
  rowMistake(row: JsonObject): ValueMistake | undefined;
}

/**
 * Compiles the schema of a definition that parseDefinition has accepted. Throws an Error if ajv
 * cannot compile it; its message begins with the JSON pointer of the part.
 */
export function compileTable(definition: TableDefinition): CompiledTable {
  const { schema = {}, key, title } = definition;
  const { fields, whole } = compiledSchema(schema);
  const stated = Array.isArray(schema.required) ? (schema.required as readonly string[]) : [];
  const isText = ({ types, isWriteOnly }: TableField): boolean =>
    types?.has('string') === true && !isWriteOnly;
  return {
    definition,
    fields,
    required: [...new Set([...stated, ...(key === undefined ? [] : [key])])],
    title: title ?? [...fields.values()].find(isText)?.name,
    rowMistake: (row) => firstMistake(whole, row, undefined),
  };
}

/**
 * Compiles the schema of an object that is no row of a table. The function returns the members that
 * are missing and the first mistake of each other one, or else that of the whole. Throws as
 * compileTable.
 */
export function compileCheck(schema: JsonObject): (value: JsonObject) => readonly ValueMistake[] {
  const { fields, whole } = compiledSchema(schema);
  const { required } = schema;
  const needed = Array.isArray(required) ? (required as readonly string[]) : [];
  return (value) => {
    const missing = needed
      .filter((name) => !Object.hasOwn(value, name))
      .map((field): ValueMistake => ({
        field,
        reason: 'missing',
        message: `${field} is missing.`,
      }));
    const invalid = Object.entries(value).flatMap(([name, member]) => {
      return fields.get(name)?.mistake(member) ?? [];
    });
    if (missing.length + invalid.length > 0) return [...missing, ...invalid];
    const mistake = firstMistake(whole, value, undefined);
    return mistake === undefined ? [] : [mistake];
  };
}

/** The functions of a schema. */
interface CompiledSchema {
  readonly fields: ReadonlyMap<string, TableField>;
  readonly whole: SchemaCheck;
}

/** Makes the function that checks a value by a document of a schema. */
type SchemaCheck = (value: Json) => {
  readonly validate: ValidateFunction;
  /** The value as the function takes it. */
  readonly checked: unknown;
};

/** Schemas compiled lately, by digest: one write of a table parses its definition several times. */
const compiledLately = new Map<string, CompiledSchema>();

function compiledSchema(schema: JsonObject): CompiledSchema {
  const digest = jsonDigest(schema);
  const made = compiledLately.get(digest) ?? compileSchema(schema);
  compiledLately.delete(digest);
  compiledLately.set(digest, made);
  const [oldest = ''] = compiledLately.keys();
  if (compiledLately.size > compiledSchemasMax) compiledLately.delete(oldest);
  return made;
}

function compileSchema(schema: JsonObject): CompiledSchema {
  const properties = isJsonObject(schema.properties) ? schema.properties : {};
  const { documents, row, fields: names } = schemaDocuments(schema);
  const checkOf = schemaChecks(documents, hasExactNumber(schema));
  const fields = new Map<string, TableField>();
  const writeOnly = new Set(writeOnlyFields(schema));
  for (const [name, document] of names) {
    const part = isJsonObject(properties[name]) ? properties[name] : {};
    const check = checkOf(document, `/properties/${pointerPart(name)}`);
    const { 'x-table': refersTo, 'x-renamed-from': formerName } = part;
    fields.set(name, {
      name,
      schema: part,
      types: typesOf(schema, part),
      isWriteOnly: writeOnly.has(name),
      refersTo: typeof refersTo === 'string' ? refersTo : undefined,
      formerName: typeof formerName === 'string' ? formerName : undefined,
      mistake: (value) => firstMistake(check, value, name),
    });
  }
  return { fields, whole: checkOf(row, '/') };
}

/**
 * Makes the functions of documents: those of ajv for doubles, and, for a schema or a value with
 * another number, those that compare exactly, which are compiled when they are first needed.
 */
function schemaChecks(
  documents: ReadonlyMap<string, Json>,
  isExact: boolean,
): (document: string, at: string) => SchemaCheck {
  const ajvOf = (ajv: Ajv2020): Ajv2020 => {
    for (const [name, document] of documents) ajv.addSchema(document as AnySchema, name);
    return ajv;
  };
  const plain = isExact ? undefined : ajvOf(createAjv());
  let made: { readonly ajv: Ajv2020; readonly numbers: ExactNumbers } | undefined;
  const exact = (): NonNullable<typeof made> => {
    const ajv = createAjv();
    const numbers = compareExactly(ajv);
    made ??= { ajv: ajvOf(ajv), numbers };
    return made;
  };
  return (document, at) => {
    const validate = plain && compiled(plain, document, at);
    if (validate === undefined) compiled((made ?? exact()).ajv, document, at);
    return (value) => {
      if (validate !== undefined && !hasExactNumber(value)) return { validate, checked: value };
      const { ajv, numbers } = made ?? exact();
      return { validate: compiled(ajv, document, at), checked: numbers.standIn(value) };
    };
  };
}

/** Validates a schema by the meta-schema; returns the mistakes as pointers and sentences. */
export function metaSchemaMistakes(
  schema: JsonObject,
): readonly { readonly at: string; readonly message: string }[] {
  const ajv = createAjv();
  if (ajv.validateSchema(withStandIns(schema)) === true) return [];
  // The first error at a place names the mistake.
  const [first] = ajv.errors ?? [];
  const message = `It ${first === undefined ? 'is not valid' : sentenceOf(first)}.`;
  return [{ at: first?.instancePath ?? '', message }];
}

/** The `code.regExp` of ajv. Its `code` is only for functions that ajv writes to files. */
const linearRegExp = Object.assign(linearPattern, { code: 'linearPattern' });

function createAjv(): Ajv2020 {
  const { Ajv2020: Compiler } = loadAjv2020();
  const ajv = new Compiler({
    strict: false,
    allErrors: false,
    // A row without a field `constructor` has none, whatever all objects inherit.
    ownProperties: true,
    // A definition is checked before it is stored, not each time it is compiled.
    validateSchema: false,
    logger: false,
    formats: { ...formats },
    // Both take time with the square of the length of a schema.
    inlineRefs: false,
    loopEnum: 10,
    code: { regExp: linearRegExp, optimize: false },
  });
  // That of ajv compares each object of a list with each other one.
  ajv.removeKeyword('uniqueItems');
  return ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    error: { message: 'must not have duplicate items' },
    validate: (isUnique: boolean, items: readonly Json[]) => !isUnique || isUniqueList(items),
  });
}

/** The function of a document; `at` is the JSON pointer of it in the schema. */
function compiled(ajv: Ajv2020, document: string, at: string): ValidateFunction {
  try {
    const found = ajv.getSchema(document);
    if (found !== undefined) return found as ValidateFunction;
    throw new Error('there is no such schema');
  } catch (error) {
    const isTooDeep = error instanceof RangeError;
    const why = error instanceof Error ? error.message : String(error);
    const message = isTooDeep ? 'this part is too complicated. Split it, or shorten it.' : why;
    throw new Error(`${at}: ${message}`, { cause: error });
  }
}

function firstMistake(
  check: SchemaCheck,
  value: Json,
  name: string | undefined,
): ValueMistake | undefined {
  const { validate, checked } = check(value);
  if (validate(checked)) return undefined;
  const [error] = validate.errors ?? [];
  if (error === undefined) return undefined;
  const { missingProperty: missing, additionalProperty: added } = error.params as {
    readonly missingProperty?: unknown;
    readonly additionalProperty?: unknown;
  };
  const inner = error.instancePath.split('/').slice(1).map(unescaped);
  const last = [missing, added].filter((one) => typeof one === 'string');
  const field = [...(name === undefined ? [] : [name]), ...inner, ...last].join('.');
  return { field, reason: reasonOf(error), message: `${field} ${sentenceOf(error)}.` };
}

function unescaped(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}

const ranges = ['maximum', 'minimum', 'exclusiveMaximum', 'exclusiveMinimum', 'multipleOf'];
const lengths = [
  ...['maxLength', 'minLength', 'maxItems', 'minItems', 'maxProperties', 'minProperties'],
];

function reasonOf({ keyword }: ErrorObject): ProblemReason {
  if (keyword === 'type') return 'wrong_type';
  if (keyword === 'required' || keyword === 'dependentRequired') return 'missing';
  if (keyword === 'additionalProperties' || keyword === 'unevaluatedProperties') {
    return 'unknown_field';
  }
  return [...ranges, ...lengths].includes(keyword) ? 'out_of_range' : 'bad_format';
}

/** The rest of a sentence that begins with the path of the value. */
function sentenceOf({ keyword, params, message }: ErrorObject): string {
  const { allowedValues, allowedValue } = params as Readonly<Record<string, unknown>>;
  if (keyword === 'required' || keyword === 'dependentRequired') return 'is missing';
  if (Array.isArray(allowedValues)) return `has to be one of ${allowedValues.join(', ')}`;
  if (allowedValue !== undefined) return `has to be ${JSON.stringify(allowedValue)}`;
  if (keyword === 'additionalProperties') return 'is not a field that the schema knows';
  return wordsOfAjv(message) ?? 'is not valid';
}
