import type { ErrorObject, ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formSchema from '../../../public/engines/form.schema.json' with { type: 'json' };
import htmlSchema from '../../../public/engines/html.schema.json' with { type: 'json' };
import templateSchema from '../../../public/engines/template.schema.json' with { type: 'json' };
import { nearestName } from '../../config/nearest.ts';
import { branchMembers, breadcrumbProblems } from '../../breadcrumbs/breadcrumb.ts';
import { conditionTypes } from '../../breadcrumbs/conditions/table.ts';
import { renderWhenProblems } from '../../breadcrumbs/render-when.ts';
import { isJsonObject, type Json, type JsonObject } from '../../model/json.ts';
import { fetchSourcesMax } from './limits.ts';
import { breadcrumbBranchesMax } from '../../breadcrumbs/limits.ts';
import type { Problem, ProblemReason } from '../../model/failure.ts';
import { isTarget, type RuleKind } from '../../model/rule.ts';
import { parseSource } from '../../proxy/fetch-plan.ts';
import { problemsMax, waitingMembersMax } from '../limits.ts';
import { ownSchemas } from '../own-schemas.ts';

const texts = { type: 'array', maxItems: 64, items: { type: 'string' } } as const;
const sourceText = { type: 'string', maxLength: 4096 } as const;
const status = { type: 'integer', minimum: 200, maximum: 599 } as const;
const sourceWords =
  'an absolute http or https URL without a user, with at most one *, behind the host';

/**
 * The shape of enginedata by kind (docs/design/rendering.md#generic-pages,
 * docs/design/fetching.md#sources); names not mentioned are free, as the seed has it.
 */
const kindSchemas: Readonly<Partial<Record<RuleKind, JsonObject>>> = {
  'content.fetch': {
    type: 'object',
    required: ['source'],
    properties: {
      source: {
        description: `${sourceWords}; or a list of up to ${fetchSourcesMax}`,
        anyOf: [
          sourceText,
          {
            type: 'array',
            minItems: 1,
            maxItems: fetchSourcesMax,
            uniqueItems: true,
            items: sourceText,
          },
        ],
      },
      headers: {
        type: 'object',
        maxProperties: 32,
        propertyNames: {
          pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
          description: 'the name of a header field, such as X-Shop',
        },
        additionalProperties: {
          type: 'string',
          pattern: '^[\\t\\x20-\\x7e\\x80-\\xff]*$',
          description: 'one line of Latin-1 text',
        },
      },
      methods: {
        type: 'array',
        minItems: 1,
        maxItems: 32,
        items: {
          type: 'string',
          pattern: '^[A-Z][A-Z-]{0,31}$',
          description: 'a method in capitals, such as POST',
        },
      },
      pass: texts,
    },
  },
  resolve: {
    type: 'object',
    properties: {
      target: { type: 'string' },
      html: { type: 'string' },
      status,
      forward_query: { type: 'boolean' },
      when: { type: 'array', maxItems: breadcrumbBranchesMax },
    },
  },
};

/** The shape of enginedata by engine: the very schemas that the engines' documentation shows. */
const engineSchemas: ReadonlyMap<string, JsonObject> = new Map<string, JsonObject>([
  ['html', htmlSchema],
  ['template', templateSchema],
  ['form', formSchema],
]);

/** Those that name all members there are; the others have members of the designer's own. */
const closedSchemas: ReadonlySet<JsonObject> = new Set(
  [kindSchemas['content.fetch'], kindSchemas.resolve, engineSchemas.get('form')].filter(
    (schema) => schema !== undefined,
  ),
);

const ajv = new Ajv2020(ownSchemas);
// Slower, and asked only where something is wrong.
const explainingAjv = new Ajv2020({ ...ownSchemas, allErrors: true, verbose: true });
const compiled = new Map<JsonObject, ValidateFunction>();
const explaining = new Map<JsonObject, ValidateFunction>();

/** What decides which shape enginedata has to have. */
export interface EnginedataPlacing {
  readonly kind: RuleKind;
  readonly engine: string | undefined;
}

/** A problem in enginedata, and where the value stands that is not in force because of it. */
interface EnginedataProblem {
  readonly problem: Problem;
  /** Names on the way to the value; undefined where no value waits. */
  readonly waits: readonly string[] | undefined;
}

/** What is wrong with an enginedata for its kind, or else its engine; empty where nothing is. */
export function enginedataProblems(
  value: JsonObject,
  { kind, engine }: EnginedataPlacing,
): readonly EnginedataProblem[] {
  const schema = kindSchemas[kind] ?? engineSchemas.get(engine ?? '');
  const problems = schema === undefined ? [] : schemaProblems(schema, value);
  const isTold = (name: string): boolean => problems.some(({ waits }) => waits?.[0] === name);
  const { source, target } = value;
  if (kind === 'content.fetch' && source !== undefined && !isTold('source')) {
    if (![source].flat().every((one) => parseSource(one) !== undefined)) {
      problems.push(memberProblem(['source'], value, 'bad_format', `has to be ${sourceWords}`));
    }
  }
  if (kind === 'resolve' && typeof target === 'string' && !isTarget(target)) {
    const words = 'has to be an absolute http or https URL, a path on this site, or key:<key>';
    problems.push(memberProblem(['target'], value, 'bad_format', words));
  }
  if (kind !== 'content.fetch') problems.push(...branchProblems(value, kind));
  if (schema !== undefined && closedSchemas.has(schema)) {
    // Every engine knows `when`.
    const { when: _when, ...members } = value;
    const closed = kind === 'content.fetch' ? value : members;
    problems.push(...unknownMembers(schema, closed, 'enginedata'));
  }
  return problems;
}

/**
 * Takes the members out of an enginedata that are not valid for its kind and engine: one invalid
 * member waits alone, its valid siblings count (docs/design/page-rules.md#invalid-values). What the
 * member was before stays in its place, if that is still valid.
 */
export function splitEnginedata(
  value: JsonObject,
  before: JsonObject | undefined,
  placing: EnginedataPlacing,
): { readonly valid: JsonObject; readonly waiting: JsonObject | undefined } {
  let valid = value;
  let waiting: JsonObject | undefined;
  // To take one member out may show what is wrong with another one.
  for (let round = 0; round < roundsMax; round += 1) {
    const paths = waitingPaths(valid, placing);
    if (paths.length === 0) return { valid, waiting };
    // Of an object, some members may wait already.
    waiting = mergeEnginedata(waiting ?? {}, withMembers({}, membersAt(valid, paths)));
    valid = withoutMembers(valid, paths);
    if (before === undefined) continue;
    const old = membersAt(before, paths);
    const wrong = waitingPaths(withMembers(valid, old), placing);
    const usable = old.filter(([path]) => !wrong.some((one) => isSamePath(one, path)));
    valid = withMembers(valid, usable);
  }
  return { valid: before ?? {}, waiting: value };
}

/** An enginedata with what waits put into its place: names that both have are those that wait. */
export function mergeEnginedata(valid: JsonObject, waiting: JsonObject): JsonObject {
  const merged = new Map(Object.entries(valid));
  for (const [name, value] of Object.entries(waiting)) {
    const inner = merged.get(name);
    merged.set(
      name,
      isJsonObject(inner) && isJsonObject(value) ? mergeEnginedata(inner, value) : value,
    );
  }
  return Object.fromEntries(merged);
}

/**
 * What in a valid enginedata says nothing and is kept all the same, as paths such as
 * `enginedata.when[0].if.colour`: a breadcrumb leaves such a branch out.
 */
export function unreadEnginedata(value: JsonObject, kind: RuleKind): readonly string[] {
  if (kind === 'content.fetch') return [];
  return unreadPaths(value, kind).map((path) => `enginedata.${path}`);
}

const roundsMax = 8;

function validate(
  validator: Ajv2020,
  known: Map<JsonObject, ValidateFunction>,
  schema: JsonObject,
  value: Json,
): boolean {
  let run = known.get(schema);
  if (run === undefined) {
    run = validator.compile(schema);
    known.set(schema, run);
  }
  return run(value);
}

function schemaProblems(schema: JsonObject, value: JsonObject): EnginedataProblem[] {
  return validate(ajv, compiled, schema, value) ? [] : shapeProblems(schema, value);
}

function shapeProblems(schema: JsonObject, value: JsonObject): EnginedataProblem[] {
  validate(explainingAjv, explaining, schema, value);
  const errors = (explaining.get(schema)?.errors ?? []).slice(0, errorsMax);
  const problems = errors.filter(isOwnError).map((error) => shapeProblem(error, value));
  const fields = new Set<string>();
  return problems.filter(({ problem: { field } }) => {
    const isNew = !fields.has(field);
    fields.add(field);
    return isNew;
  });
}

/** Of more, the members that they are in wait as a whole. */
const errorsMax = 10 * waitingMembersMax;

/** Of alternatives, what is wrong with each is left out, but for the first of the whole shape. */
function isOwnError({ schemaPath, keyword, propertyName }: ErrorObject): boolean {
  if (propertyName !== undefined) return false;
  if (schemaPath === '#/anyOf') return false;
  return (
    !schemaPath.includes('/anyOf/') ||
    (keyword === 'required' && schemaPath.startsWith('#/anyOf/0/'))
  );
}

function shapeProblem(error: ErrorObject, value: JsonObject): EnginedataProblem {
  const { keyword, params, data, parentSchema } = error;
  const path = pointerNames(error.instancePath);
  const { description } = (parentSchema ?? {}) as { readonly description?: string };
  const told = description === undefined || description.length > wordsMax ? undefined : description;
  switch (keyword) {
    case 'required':
      return missingProblem([...path, String(params.missingProperty)], value, path);
    case 'propertyNames': {
      const { propertyName } = params as { readonly propertyName: string };
      const names = (error.schema as { readonly description?: string } | undefined)?.description;
      return memberProblem(
        [...path, propertyName],
        value,
        'bad_format',
        `is not ${names ?? 'a name'}`,
      );
    }
    case 'type': {
      const words = typeWords[String(params.type)] ?? String(params.type);
      return memberProblem(path, value, 'wrong_type', `has to be ${words}`);
    }
    case 'anyOf': {
      const isOfType = typeof data === 'string' || Array.isArray(data);
      const reason = isOfType ? 'bad_format' : 'wrong_type';
      return memberProblem(path, value, reason, `has to be ${told ?? 'of another form'}`);
    }
    case 'enum': {
      const allowed = (params.allowedValues as readonly unknown[]).map(String);
      const suggestion = typeof data === 'string' ? nearestName(data, allowed) : undefined;
      const words = `has to be ${allowed.join(' or ')}`;
      return memberProblem(path, value, 'bad_format', words, suggestion);
    }
    case 'pattern':
      return memberProblem(path, value, 'bad_format', `has to be ${told ?? 'of another form'}`);
    default:
      return memberProblem(path, value, 'out_of_range', error.message ?? 'is out of range');
  }
}

const wordsMax = 160;
const typeWords: Readonly<Record<string, string>> = {
  string: 'a text',
  array: 'a list',
  object: 'an object',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
};

/** What is missing inside a member makes that member wait; the whole never does. */
function missingProblem(
  path: readonly string[],
  value: JsonObject,
  owner: readonly string[],
): EnginedataProblem {
  const field = fieldName(value, path);
  const message = `${field} is missing.`;
  const waits = owner.length === 0 ? undefined : objectPath(value, owner);
  return { problem: { field, reason: 'missing', message }, waits };
}

function memberProblem(
  path: readonly string[],
  value: JsonObject,
  reason: ProblemReason,
  words: string,
  suggestion?: string,
): EnginedataProblem {
  const field = fieldName(value, path);
  const message = `${field} ${words}; it waits in _unknowns_.`;
  return {
    problem: { field, reason, message, ...(suggestion !== undefined && { suggestion }) },
    waits: objectPath(value, path),
  };
}

/** The part of a path that leads through objects alone: of a list, all waits. */
function objectPath(value: JsonObject, path: readonly string[]): readonly string[] {
  let at: Json | undefined = value;
  for (const [index, name] of path.entries()) {
    if (Array.isArray(at)) return path.slice(0, index);
    at = isJsonObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return path;
}

/** A path as a person writes it: `enginedata.submit.url`, `enginedata.scripts[1]`. */
function fieldName(value: JsonObject, path: readonly string[]): string {
  let name = 'enginedata';
  let at: Json | undefined = value;
  for (const part of path) {
    name += Array.isArray(at) ? `[${part}]` : `.${part}`;
    at = typeof at === 'object' && at !== null ? (at as JsonObject)[part] : undefined;
  }
  return name;
}

/** The names of a JSON Pointer (RFC 6901 §4). */
function pointerNames(pointer: string): readonly string[] {
  const parts = pointer.split('/').slice(1);
  return parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function unknownMembers(
  { properties }: JsonObject,
  value: JsonObject,
  field: string,
): readonly EnginedataProblem[] {
  if (!isJsonObject(properties)) return [];
  const known = Object.keys(properties);
  const problems: EnginedataProblem[] = [];
  for (const [name, member] of Object.entries(value)) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const path = `${field}.${name}`;
    if (!isJsonObject(schema)) problems.push(unknownMember(path, name, known));
    else if (isJsonObject(member)) problems.push(...unknownMembers(schema, member, path));
    if (problems.length >= problemsMax) break;
  }
  return problems;
}

/** It is kept and served, as the seed has arbitrary members. */
function unknownMember(field: string, name: string, known: readonly string[]): EnginedataProblem {
  const suggestion = nearestName(name, known);
  const hint =
    suggestion === undefined ? `known are ${known.join(', ')}.` : `did you mean ${suggestion}?`;
  return {
    problem: {
      field,
      reason: 'unknown_field',
      message: `${field} is no member that Waymark knows, and has no effect: ${hint}`,
      ...(suggestion !== undefined && { suggestion }),
    },
    waits: undefined,
  };
}

/** What makes branches of a `when` never be taken; they stay where they are. */
function branchProblems(value: JsonObject, kind: RuleKind): readonly EnginedataProblem[] {
  const { when } = value;
  if (!Array.isArray(when)) return [];
  const branches = (when as readonly Json[]).slice(0, breadcrumbBranchesMax);
  const members = kind === 'resolve' ? branchMembers : renderMembers;
  const unknown = branches.flatMap((branch, at) =>
    Object.keys(isJsonObject(branch) ? branch : {})
      .filter((name) => !members.includes(name))
      .map((name) => ({ name, at })),
  );
  return [
    ...unreadPaths(value, kind)
      .slice(0, problemsMax)
      .map((path) => branchProblem(branches, path)),
    ...unknown
      .slice(0, problemsMax)
      .map(({ name, at }) => unknownMember(`enginedata.when[${at}].${name}`, name, members)),
  ];
}

/** The members that a branch of a page may have. */
const renderMembers: readonly string[] = ['if', 'enginedata'];
const conditionNames = conditionTypes.map(({ name }) => name);

function unreadPaths(value: JsonObject, kind: RuleKind): readonly string[] {
  return kind === 'resolve' ? breadcrumbProblems(value) : renderWhenProblems(value);
}

/** The problem at a path such as `when[0].if.colour`. */
function branchProblem(branches: readonly Json[], path: string): EnginedataProblem {
  const field = `enginedata.${path}`;
  const [, index = '', member = '', condition] =
    /^when\[(\d+)\](?:\.(\w+))?(?:\.(.*))?$/s.exec(path) ?? [];
  if (condition !== undefined && !conditionNames.includes(condition)) {
    return unknownMember(field, condition, conditionNames);
  }
  const [reason, words] = whyUnread(branches[Number(index)], member, condition !== undefined);
  const message = `${field} ${words}: this branch is never taken.`;
  return { problem: { field, reason, message }, waits: undefined };
}

function whyUnread(
  branch: Json | undefined,
  member: string,
  isCondition: boolean,
): readonly [ProblemReason, string] {
  if (isCondition) return ['bad_format', 'is not valid'];
  if (!isJsonObject(branch)) return ['wrong_type', 'has to be an object'];
  if (member === '') return ['missing', 'has no target, html or status'];
  if (branch[member] === undefined) return ['missing', 'is missing'];
  if (renderMembers.includes(member)) return ['wrong_type', 'has to be an object'];
  return ['bad_format', 'is not valid'];
}

/** Where values stand that are not valid, none of them inside another one. */
function waitingPaths(
  value: JsonObject,
  placing: EnginedataPlacing,
): readonly (readonly string[])[] {
  const all = enginedataProblems(value, placing).flatMap(({ waits }) =>
    waits === undefined ? [] : [waits],
  );
  const whole = new Set(all.filter(({ length }) => length === 1).map(([name]) => name));
  // Where a great many are wrong, the members that they are in wait.
  if (all.length > waitingMembersMax) for (const [name] of all) whole.add(name);
  const inside = all.filter(([name]) => !whole.has(name));
  return [...Array.from(whole, (name = '') => [name]), ...inside];
}

function isSamePath(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name, at) => name === other[at]);
}

function memberAt(value: JsonObject, [name = '', ...rest]: readonly string[]): Json | undefined {
  const member = Object.hasOwn(value, name) ? value[name] : undefined;
  if (rest.length === 0) return member;
  return isJsonObject(member) ? memberAt(member, rest) : undefined;
}

/** Members of an object by the names on the way to them. */
type Members = readonly (readonly [path: readonly string[], member: Json])[];

function membersAt(value: JsonObject, paths: readonly (readonly string[])[]): Members {
  return paths.flatMap((path) => {
    const member = memberAt(value, path);
    return member === undefined ? [] : [[path, member] as const];
  });
}

/** Puts members in, in one pass: there may be thousands of others. */
function withMembers(value: JsonObject, members: Members): JsonObject {
  if (members.length === 0) return value;
  const result = new Map(Object.entries(value));
  for (const [[name = '', ...rest], member] of members) {
    if (rest.length === 0) result.set(name, member);
  }
  const inner = members.filter(([{ length }]) => length > 1);
  for (const [name, those] of Map.groupBy(inner, ([[first = '']]) => first)) {
    const at = result.get(name);
    const deeper = those.map(([[, ...rest], member]) => [rest, member] as const);
    result.set(name, withMembers(isJsonObject(at) ? at : {}, deeper));
  }
  return Object.fromEntries(result);
}

/** Takes members out, in one pass. */
function withoutMembers(value: JsonObject, paths: readonly (readonly string[])[]): JsonObject {
  const result = new Map(Object.entries(value));
  for (const [name = '', ...rest] of paths) if (rest.length === 0) result.delete(name);
  const inner = paths.filter(({ length }) => length > 1);
  for (const [name, those] of Map.groupBy(inner, ([first = '']) => first)) {
    const at = result.get(name);
    const deeper = those.map(([, ...rest]) => rest);
    if (isJsonObject(at)) result.set(name, withoutMembers(at, deeper));
  }
  return Object.fromEntries(result);
}
