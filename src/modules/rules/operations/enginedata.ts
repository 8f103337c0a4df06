import type { ErrorObject } from 'ajv';
import formSchema from '../../../../public/engines/form.schema.json' with { type: 'json' };
import htmlSchema from '../../../../public/engines/html.schema.json' with { type: 'json' };
import templateSchema from '../../../../public/engines/template.schema.json' with { type: 'json' };
import { unknownVariable, variableWords } from '../../../core/http/field-template.ts';
import { createValidators, wordsOfAjv } from '../../../core/operations/ajv.ts';
import { problemsMax, waitingMembersMax } from '../../../core/operations/limits.ts';
import { conditionTypes } from '../../../core/pipeline/conditions/table.ts';
import type { Problem, ProblemReason } from '../../../core/values/failure.ts';
import { type Json, type JsonObject, isJsonObject } from '../../../core/values/json/json.ts';
import { checkIntervalMax, checkIntervalMin } from '../../../core/values/limits.ts';
import { nearestName } from '../../../core/values/nearest.ts';
import { parseAuthority } from '../../../core/values/network/authority.ts';
import { unixSpelling } from '../../../core/values/network/unix-socket.ts';
import { durationMs } from '../../../core/values/units.ts';
import { renderWhenProblems } from '../../breadcrumbs/branches.ts';
import { parseBranchFields } from '../../breadcrumbs/branch-fields.ts';
import { branchMembers, breadcrumbProblems } from '../../breadcrumbs/breadcrumb.ts';
import { branchesMax } from '../../../core/pipeline/conditions/when.ts';
import { parseSource } from '../../proxy/fetch-plan.ts';
import { isNeverSet } from '../../proxy/request-fields.ts';
import { isNeverPassed } from '../../proxy/response-fields.ts';
import { type RuleKind, isTarget } from '../rule.ts';
import { kindSchemas, sourceWords } from './kind-schemas.ts';

/** The longest `timeout` of a page rule. */
const fetchTimeoutMsMax = 24 * 3_600_000;

/** The schemas of enginedata by engine: those that the engines' documentation shows. */
export const engineSchemas: ReadonlyMap<string, JsonObject> = new Map<string, JsonObject>([
  ['html', htmlSchema],
  ['template', templateSchema],
  ['form', formSchema],
]);

/** The schemas that name all members. With the others, a designer may add members. */
const closedSchemas: ReadonlySet<JsonObject> = new Set(
  [kindSchemas['content.fetch'], kindSchemas.resolve, engineSchemas.get('form')].filter(
    (schema) => schema !== undefined,
  ),
);

const validatorOf = createValidators({});
// It is slower, so it runs only for a value that is not valid.
const explainingValidatorOf = createValidators({ allErrors: true, verbose: true });

/** The fields that decide which schema enginedata has. */
export interface EnginedataPlacing {
  readonly kind: RuleKind;
  readonly engine: string | undefined;
}

/** A problem in enginedata, and the path to the value that waits because of it. */
interface EnginedataProblem {
  readonly problem: Problem;
  /** The names on the path; undefined if no value waits. */
  readonly waits: readonly string[] | undefined;
}

/** The problems of an enginedata by the schema of its kind, or else of its engine. */
export function enginedataProblems(
  value: JsonObject,
  { kind, engine }: EnginedataPlacing,
): readonly EnginedataProblem[] {
  const schema = kindSchemas[kind] ?? engineSchemas.get(engine ?? '');
  const problems = schema === undefined ? [] : schemaProblems(schema, value);
  const hasProblem = (name: string): boolean => problems.some(({ waits }) => waits?.[0] === name);
  const { source, target } = value;
  if (kind === 'content.fetch' && source !== undefined && !hasProblem('source')) {
    if (![source].flat().every((one) => parseSource(one) !== undefined)) {
      problems.push(memberProblem(['source'], value, 'bad_format', sourceCure(source)));
    }
  }
  if (kind === 'content.fetch') problems.push(...wordProblems(value, hasProblem));
  if (kind === 'resolve' && typeof target === 'string' && !isTarget(target)) {
    const words = 'has to be an absolute http or https URL, a path on this site, or key:<key>';
    problems.push(memberProblem(['target'], value, 'bad_format', words));
  }
  if (kind !== 'content.fetch') problems.push(...branchProblems(value, kind));
  if (schema !== undefined && closedSchemas.has(schema)) {
    // Every engine has `when`, which branchProblems checks.
    const { when: _when, ...members } = value;
    const closed = kind === 'content.fetch' ? value : members;
    problems.push(...unknownMembers(schema, closed, 'enginedata'));
  }
  return problems;
}

/** What a source has to be, with the spelling of a unix socket that was meant. */
function sourceCure(source: Json): string {
  const meant = [source]
    .flat()
    .flatMap((one) =>
      typeof one === 'string' ? (unixSpelling(one.replaceAll('*', 'x')) ?? []) : [],
    );
  if (meant.length > 0) return 'has to be `unix:/run/app.sock` for a unix socket, without http://';
  return `has to be ${sourceWords}`;
}

/** The problems of the members of content.fetch whose words a schema cannot describe. */
function wordProblems(
  value: JsonObject,
  hasProblem: (name: string) => boolean,
): readonly EnginedataProblem[] {
  const { host, timeout, request_headers: templates, weights, source } = value;
  const problems: EnginedataProblem[] = [];
  if (Array.isArray(weights) && !hasProblem('weights') && !hasProblem('source')) {
    if (weights.length !== [source].flat().length || weights.every((weight) => weight === 0)) {
      const words = 'has to have a number for each source, one of them more than 0';
      problems.push(memberProblem(['weights'], value, 'bad_format', words));
    }
  }
  if (typeof host === 'string' && !hasProblem('host') && parseAuthority(host, 'http') !== host) {
    const words = 'has to be client, source, or a host such as app.example.com';
    problems.push(memberProblem(['host'], value, 'bad_format', words));
  }
  if (typeof timeout === 'string' && !hasProblem('timeout')) {
    const ms = durationMs(timeout) ?? 0;
    if (ms < 1 || ms > fetchTimeoutMsMax) {
      problems.push(memberProblem(['timeout'], value, 'out_of_range', 'has to be from 1ms to 24h'));
    }
  }
  const { health_interval: interval } = value;
  if (typeof interval === 'string' && !hasProblem('health_interval')) {
    const ms = durationMs(interval) ?? 0;
    if (ms < (durationMs(checkIntervalMin) ?? 0) || ms > (durationMs(checkIntervalMax) ?? 0)) {
      const words = `has to be from ${checkIntervalMin} to ${checkIntervalMax}`;
      problems.push(memberProblem(['health_interval'], value, 'out_of_range', words));
    }
  }
  problems.push(...fieldNameProblems(value, hasProblem));
  if (!isJsonObject(templates) || hasProblem('request_headers')) return problems;
  for (const [name, text] of Object.entries(templates)) {
    const unknown = typeof text === 'string' ? unknownVariable(text) : undefined;
    if (unknown === undefined) continue;
    const words = `has the unknown variable ${unknown}; known are ${variableWords}`;
    problems.push(memberProblem(['request_headers', name], value, 'bad_format', words));
  }
  return problems;
}

/** The problems of names of fields that a source can never get, or that are never passed on. */
function fieldNameProblems(
  value: JsonObject,
  hasProblem: (name: string) => boolean,
): readonly EnginedataProblem[] {
  const problems: EnginedataProblem[] = [];
  for (const member of ['headers', 'request_headers'] as const) {
    const fields = value[member];
    if (!isJsonObject(fields) || hasProblem(member)) continue;
    for (const name of Object.keys(fields)) {
      if (!isNeverSet(name.toLowerCase())) continue;
      const words = 'cannot be set: this server sets that field itself, or never sends it';
      problems.push(memberProblem([member, name], value, 'bad_format', words));
    }
  }
  const { pass } = value;
  if (!Array.isArray(pass) || hasProblem('pass')) return problems;
  for (const [at, name] of (pass as readonly string[]).entries()) {
    if (!isNeverPassed(name.toLowerCase())) continue;
    const field = `enginedata.pass[${at}]`;
    const message = `${field} has no effect: ${name} is never passed on.`;
    problems.push({ problem: { field, reason: 'no_effect', message }, waits: undefined });
  }
  return problems;
}

/**
 * The paths in a valid enginedata that have no effect: such as `enginedata.when[0].if.colour`,
 * because a branch with such a member is never taken, or a header field that is never sent.
 */
export function unreadEnginedata(value: JsonObject, kind: RuleKind): readonly string[] {
  if (kind === 'content.fetch') return [];
  const unsent = unsentFields(value, kind).map(({ field }) => field);
  return [...unreadPaths(value, kind).map((path) => `enginedata.${path}`), ...unsent];
}

function schemaProblems(schema: JsonObject, value: JsonObject): EnginedataProblem[] {
  return validatorOf(schema)(value) ? [] : shapeProblems(schema, value);
}

function shapeProblems(schema: JsonObject, value: JsonObject): EnginedataProblem[] {
  const validate = explainingValidatorOf(schema);
  validate(value);
  const errors = (validate.errors ?? []).slice(0, errorsMax);
  const problems = errors.filter(isOwnError).map((error) => shapeProblem(error, value));
  const fields = new Set<string>();
  return problems.filter(({ problem: { field } }) => {
    const isNew = !fields.has(field);
    fields.add(field);
    return isNew;
  });
}

/** Errors that are examined. */
const errorsMax = 10 * waitingMembersMax;

/**
 * Whether an error is shown: of alternatives, only a missing member of the first one is, because
 * the error of `anyOf` itself covers the rest.
 */
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
  const words =
    description === undefined || description.length > wordsMax ? undefined : description;
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
      const type = typeWords[String(params.type)] ?? String(params.type);
      return memberProblem(path, value, 'wrong_type', `has to be ${type}`);
    }
    case 'anyOf': {
      const isOfType = typeof data === 'string' || Array.isArray(data);
      const reason = isOfType ? 'bad_format' : 'wrong_type';
      return memberProblem(path, value, reason, `has to be ${words ?? 'of another form'}`);
    }
    case 'enum': {
      const allowed = (params.allowedValues as readonly unknown[]).map(String);
      const suggestion = typeof data === 'string' ? nearestName(data, allowed) : undefined;
      const choice = `has to be ${allowed.join(' or ')}`;
      return memberProblem(path, value, 'bad_format', choice, suggestion);
    }
    case 'pattern':
      return memberProblem(path, value, 'bad_format', `has to be ${words ?? 'of another form'}`);
    default:
      return memberProblem(
        path,
        value,
        'out_of_range',
        wordsOfAjv(error.message) ?? 'is out of range',
      );
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

/** A member that lacks something waits; enginedata as a whole never does. */
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

/** The part of a path up to the first list: a list waits as a whole. */
function objectPath(value: JsonObject, path: readonly string[]): readonly string[] {
  let at: Json | undefined = value;
  for (const [index, name] of path.entries()) {
    if (Array.isArray(at)) return path.slice(0, index);
    at = isJsonObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return path;
}

/** A path in messages: `enginedata.submit.url`, `enginedata.scripts[1]`. */
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

/** An unknown member does not wait: it is stored and served. */
function unknownMember(field: string, name: string, known: readonly string[]): EnginedataProblem {
  const suggestion = nearestName(name, known);
  const hint =
    suggestion === undefined ? `known are ${known.join(', ')}.` : `did you mean ${suggestion}?`;
  return {
    problem: {
      field,
      reason: 'unknown_field',
      message: `${field} is not a known member, and has no effect: ${hint}`,
      ...(suggestion !== undefined && { suggestion }),
    },
    waits: undefined,
  };
}

/** The problems of branches of `when` that are never taken; they do not wait. */
function branchProblems(value: JsonObject, kind: RuleKind): readonly EnginedataProblem[] {
  const { when } = value;
  if (!Array.isArray(when)) return [];
  const branches = (when as readonly Json[]).slice(0, branchesMax);
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
    ...unsentFields(value, kind)
      .slice(0, problemsMax)
      .map((problem) => ({ problem, waits: undefined })),
    ...unknown
      .slice(0, problemsMax)
      .map(({ name, at }) => unknownMember(`enginedata.when[${at}].${name}`, name, members)),
  ];
}

/** The header fields and cookies of branches that are never sent. */
function unsentFields({ when }: JsonObject, kind: RuleKind): readonly Problem[] {
  if (kind !== 'resolve' || !Array.isArray(when)) return [];
  const branches = (when as readonly Json[]).slice(0, branchesMax);
  return branches.flatMap((branch, at) =>
    parseBranchFields(isJsonObject(branch) ? branch : {}).unsent.map(({ path, reason, words }) => {
      const field = `enginedata.when[${at}].${path}`;
      return { field, reason, message: `${field} ${words}; it is never sent.` };
    }),
  );
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
