import type { OperationDescription } from '../../core/operations/operation.ts';
import { operations } from '../../modules.ts';
import type { Json, JsonObject } from '../../core/values/json/json.ts';
import { callApi } from './api-client.ts';
import {
  answerResult,
  parseObject,
  readText,
  type InputOption,
  type Subcommand,
} from './client-command.ts';

/** Subcommands by their names. */
type Subcommands = Readonly<Record<string, Subcommand>>;

/**
 * The subcommands of a family of operations: the given ones, and one for each other operation
 * of `all` that answers a JSON envelope over HTTP. `elsewhere` names operations with commands of
 * their own.
 */
export function operationSubcommands(
  family: string,
  own: Subcommands,
  elsewhere: readonly string[] = [],
  all: readonly OperationDescription[] = operations,
): Subcommands {
  const others = all
    .filter(({ name, effect, replies, linesField }) => {
      const isCallable = effect !== 'streams' && replies === undefined && linesField === undefined;
      return isCallable && name.startsWith(`svc1.${family}.`);
    })
    .map((one) => [one.name.split('.').slice(2).join('-').replaceAll('_', '-'), one] as const)
    .filter(([name]) => !Object.hasOwn(own, name) && !elsewhere.includes(name))
    .map(([name, one]) => [name, operationSubcommand(one)] as const);
  return { ...own, ...Object.fromEntries(others) };
}

/** Options of every client command: an input field with such a name is an argument. */
const ownOptions: readonly string[] = ['url', 'apikey', 'config', 'json', 'vk', 'help'];

/** The subcommand of an operation: required input fields are arguments, most others options. */
function operationSubcommand({
  name,
  summary,
  input,
  fields = input,
  envelope,
  inDrafts,
  optionalArgument = '',
}: OperationDescription): Subcommand {
  const { required = [] } = input;
  const isRequired = (field: string): boolean => (required as readonly Json[]).includes(field);
  const schemas = Object.entries(propertiesOf(fields));
  const optional = [...ownOptions, optionalArgument];
  const positional = schemas
    .filter(([field]) => isRequired(field) || optional.includes(field))
    .toSorted(([one], [other]) => Number(isRequired(other)) - Number(isRequired(one)));
  const argOf = (field: string): string => (isRequired(field) ? `<${field}>` : `[${field}]`);
  return {
    summary: asPhrase(summary),
    args: Object.fromEntries(
      positional.map(([field, schema]) => [argOf(field), describe(field, schema)] as const),
    ),
    options: inputOptions(schemas.filter((one) => !positional.includes(one))),
    writes: envelope?.vk !== undefined,
    inDrafts: inDrafts === true,
    async *run(args, { api, vk, input: given, stdin }) {
      const v = new Map(Object.entries(given));
      for (const [at, [field]] of positional.entries()) {
        const value = args[at];
        if (value !== undefined) v.set(field, value);
      }
      for (const [field, schema] of schemas) {
        const value = v.get(field);
        if (typeof value !== 'string' || !isObjectSchema(schema)) continue;
        v.set(field, parseObject(await readText(value, stdin), field));
      }
      const answer = await callApi(api, name, { v: Object.fromEntries(v), vk });
      yield answerResult(answer);
    },
  };
}

/** Options for input fields, from their schemas. */
export function inputOptions(
  schemas: readonly (readonly [string, JsonObject])[],
): Readonly<Record<string, InputOption>> {
  return Object.fromEntries(
    schemas.map(([field, schema]) => {
      const { type } = schema;
      const values = choicesOf(schema);
      const option: InputOption = {
        description: describe(field, schema),
        ...(type !== 'boolean' && { value: placeholder(field, schema) }),
        ...(type === 'integer' && { isNumber: true }),
        ...(values !== undefined && { values }),
      };
      return [field, option] as const;
    }),
  );
}

/** The JSON Schemas of the fields of an input. */
function propertiesOf({ properties }: JsonObject): Readonly<Record<string, JsonObject>> {
  return (properties ?? {}) as Readonly<Record<string, JsonObject>>;
}

function placeholder(field: string, schema: JsonObject): string {
  if (field === 'as_of') return 'time';
  return isObjectSchema(schema) ? 'json' : field;
}

function choicesOf({ enum: values }: JsonObject): readonly string[] | undefined {
  if (!Array.isArray(values)) return undefined;
  return (values as readonly Json[]).filter((value) => typeof value === 'string');
}

function isObjectSchema({ type }: JsonObject): boolean {
  return type === 'object';
}

function describe(field: string, { description }: JsonObject): string {
  return typeof description === 'string' ? asPhrase(description) : `the field ${field}`;
}

/** A sentence of the documents as help shows it: in lower case, and without a full stop. */
function asPhrase(sentence: string): string {
  const isName = /^(?:[A-Z]{2}|V8|If-)/.test(sentence);
  const start = isName ? sentence : `${sentence.slice(0, 1).toLowerCase()}${sentence.slice(1)}`;
  return start.replace(/\.$/, '');
}
