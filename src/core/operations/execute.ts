import type { ErrorObject } from 'ajv';
import { generationName } from '../../modules/nodes/central-client.ts';
import type { PassOn, PassedRequest } from '../../modules/nodes/pass-on.ts';
import { withoutCaching } from '../http/reply.ts';
import type { ToolUse } from '../log/change.ts';
import { Failure } from '../values/failure.ts';
import { type JsonObject, isJsonObject, nestsDeeper } from '../values/json/json.ts';
import { type Caller, hasHookScope, hasScope } from '../values/key.ts';
import { jsonDepthMax } from '../values/limits.ts';
import { nearestName } from '../values/nearest.ts';
import { createValidators, validInput, wordsOfAjv } from './ajv.ts';
import { requireBoundOperation } from './bounds/operations.ts';
import { isSessionToken } from './keys/authenticate.ts';
import type { KeyRates } from './keys/key-rates.ts';
import { vkCharactersMax } from './limits.ts';
import type { RecordChange } from '../log/store.ts';
import type { Call, Operation, OperationResult, Packet } from './operation.ts';
import { requireKnownFields } from './problems.ts';

/** Runs operations by name. */
export interface Execute {
  /** An operation by its name; undefined if there is none. */
  find(name: string): Operation | undefined;
  /** As find; throws `not_found`, with the nearest name, if there is none. */
  require(name: string): Operation;
  /**
   * Authorises the caller, checks the input and runs the operation. Rejects with `not_found` for an
   * unknown name, `unauthenticated` or `forbidden` without the scope, `rate_limited` if the key has
   * used up its rate, `invalid` or `too_large` for input that does not fit, and with the failures
   * of the operation.
   */
  run(name: string, v: unknown, call: Call): Promise<OperationResult>;
  /**
   * Authorises the caller of an operation that streams again, and makes the packet of a change.
   * Throws `unauthenticated` or `forbidden`.
   */
  packet(name: string, change: RecordChange, call: Call): Packet;
  /**
   * Authorises a request that is no operation of the table, and counts it as one. With `draft`, it
   * will run `operation` in this draft. Throws `unauthenticated`, `forbidden` or `rate_limited`;
   * `not_found` or `conflict` for a draft that the caller cannot change.
   */
  admit(
    request: Pick<Operation, 'name' | 'scope' | 'inDrafts'>,
    caller: Caller,
    then?: { readonly draft: string | undefined; readonly operation: string },
  ): void;
  /** Counts a request of a caller that no operation counts. Throws `rate_limited`. */
  count(caller: Caller): void;
}

/** The dependencies of Execute. */
export interface ExecuteParts {
  readonly keyRates: Pick<KeyRates, 'count'>;
  /** See LogIdentity.generation. */
  readonly generation?: () => number;
  /** Undefined at a node without a centre. */
  readonly passOn?: PassOn | undefined;
  /** The tool of a call that another node has passed on; undefined for another call. */
  readonly passedTool?: (name: string, call: Call) => ToolUse | undefined;
  /** Whether this node takes the writes of an operation into its outbox. */
  readonly goesToOutbox?: (name: string, caller: Caller) => boolean;
  /** An operation that can be in drafts, in an open one; throws `not_found` or `conflict`. */
  readonly inDraft?: (draft: string, name: string, caller: Caller) => Operation;
}

/** Makes the function by which every transport runs operations. */
export function createExecute(operations: readonly Operation[], parts: ExecuteParts): Execute {
  const { keyRates, generation = () => 0, passOn, goesToOutbox = () => false, inDraft } = parts;
  const table = new Map(operations.map((one) => [one.name, one]));
  // In query strings and forms every value is a text: ajv converts numerals to numbers.
  const validatorOf = createValidators({ coerceTypes: true, allErrors: false });

  function parse({ name, input }: Operation, given: JsonObject): JsonObject {
    const v = declared(name, input, given);
    const validate = validatorOf(input);
    const valid = validInput(validate, v);
    if (valid === undefined) throw inputFailure(validate.errors?.[0]);
    return withoutNulls(valid, input);
  }

  function require(name: string): Operation {
    const found = table.get(name);
    if (found !== undefined) return found;
    const nearest = nearestOperation(name, [...table.keys()]);
    const hint = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
    throw new Failure(
      'not_found',
      `There is no operation ${JSON.stringify(name.slice(0, 80))}.${hint}`,
    );
  }

  return {
    find: (name) => table.get(name),
    require,
    async run(name, given, sent) {
      const call = withPassedTool(parts, name, sent);
      const found = require(name);
      requireGeneration(call.fields[generationName], generation);
      authorise(found, call.caller, { mayDraft: call.draft !== undefined });
      if (call.draft !== undefined) authoriseInDraft(found, call.caller);
      const draft = call.draft ?? previewFor(found, call);
      keyRates.count(call.caller);
      const v = inputObject(given);
      requireMembers(found, call);
      if ((v.as_of ?? null) !== null && !takesMoment(found)) throw presentOnly(name);
      if (v.if_seq === '' && declares(found, 'if_seq')) throw emptyIfSeq();
      if ((v.as_of ?? null) !== null && call.draft !== undefined) throw presentOnly('A draft');
      const isKept =
        isLocal.has(name) || (call.draft === undefined && goesToOutbox(name, call.caller));
      const isPassed = found.effect === 'writes' && !isKept;
      if (passOn !== undefined && isPassed) {
        return passedOn(await passOn(name, passedRequest(v, call)));
      }
      if (draft === undefined || inDraft === undefined) return found.run(parse(found, v), call);
      return unshared(await inDraft(draft, name, call.caller).run(parse(found, v), call));
    },
    packet(name, change, call) {
      const found = table.get(name);
      if (found?.packet === undefined) throw new TypeError(`${name} does not stream`);
      authorise(found, call.caller);
      return found.packet(change, call);
    },
    admit(request, caller, { draft, operation } = { draft: undefined, operation: '' }) {
      authorise(request, caller, { mayDraft: draft !== undefined });
      keyRates.count(caller);
      if (draft === undefined) return;
      authoriseInDraft(require(operation), caller);
      inDraft?.(draft, operation, caller);
    },
    count(caller) {
      keyRates.count(caller);
    },
  };
}

/** A call with the tool of the node that has passed it on. */
function withPassedTool({ passedTool }: ExecuteParts, name: string, call: Call): Call {
  const via = call.via ?? passedTool?.(name, call);
  return via === undefined ? call : { ...call, via };
}

function inputObject(given: unknown): JsonObject {
  const v = given ?? {};
  if (!isJsonObject(v)) {
    throw new Failure('invalid', 'v must be an object of input fields.', { field: 'v' });
  }
  if (!nestsDeeper(v, jsonDepthMax)) return v;
  throw new Failure('too_large', `v nests deeper than ${jsonDepthMax} levels.`, { field: 'v' });
}

/** Throws `invalid` for members of the envelope that the operation cannot use. */
function requireMembers({ name, envelope }: Operation, { vk, qk }: Call): void {
  if (vk !== undefined && (vk === '' || vk.length > vkCharactersMax)) {
    const message = `vk must have 1 to ${vkCharactersMax} characters.`;
    throw new Failure('invalid', message, { field: 'vk' });
  }
  if (qk === undefined || envelope?.qk !== undefined) return;
  throw new Failure('invalid', `${name} takes no qk. Leave it out.`, { field: 'qk' });
}

/** Throws `unavailable` for a node whose log has replaced the one of this server. */
function requireGeneration(value: string | undefined, own: () => number): void {
  if (value === undefined || !(Number(value) > own())) return;
  throw new Failure(
    'unavailable',
    'This server is a former centre, which another node has replaced. Set `central` to that node.',
    { retryAfterSeconds: 60 },
  );
}

/** Operations that write, but concern only the process or the node that they are sent to. */
const isLocal: ReadonlySet<string> = new Set([
  'svc1.session.authenticate',
  'svc1.session.insert',
  'svc1.session.end',
  'svc1.session.unsubscribe',
  'svc1.cache.purge',
  'svc1.outbox.retry',
  'svc1.outbox.discard',
]);

/** A call as the centre gets it. */
function passedRequest(
  v: JsonObject,
  { vk, qk, draft, caller, fields, isStrict, via }: Call,
): PassedRequest {
  const { 'if-match': ifMatch, cookie } = fields;
  return {
    ...{ v, vk, qk, draft, apikey: caller.apikey, keyId: caller.keyId, via },
    fields: {
      ...(isStrict === true && { prefer: 'handling=strict' }),
      ...(ifMatch !== undefined && { 'if-match': ifMatch }),
      // The token of a session that the centre has made counts only with its cookie.
      ...(isSessionToken(caller.apikey ?? '') && cookie !== undefined && { cookie }),
    },
  };
}

function passedOn({ data, vk, replayed }: JsonObject): OperationResult {
  return {
    ...{ kind: 'data', data },
    ...(typeof vk === 'string' && { vk }),
    ...(replayed === true && { replayed }),
  };
}

/** The operation with the nearest name: first its family, then its verb. */
function nearestOperation(name: string, names: readonly string[]): string | undefined {
  const [, family = '', verb = ''] = name.split('.');
  const all = names.map((one) => one.split('.'));
  const families = [...new Set(all.map(([, one = '']) => one))];
  const near = families.includes(family) ? family : nearestName(family, families);
  const verbs = all.flatMap(([, of, one = '']) => (of === near ? [one] : []));
  const meant = nearestName(verb, verbs);
  return meant && names.find((one) => one.startsWith(`svc1.${near}.${meant}`));
}

/** The members of an operation that decide who may call it. */
type Authorised = Pick<Operation, 'scope' | 'name' | 'tableDecides' | 'forHookKeys' | 'inDrafts'>;

/**
 * Throws `unauthenticated` or `forbidden` for a caller without the scope of an operation, and for
 * one whose key is bound to less than it is about. With `mayDraft`, the call is or may be about a
 * draft, which the scope `draft` may change.
 */
export function authorise(
  operation: Authorised,
  caller: Caller,
  options: { readonly mayDraft?: boolean } = {},
): void {
  requireScope(operation, caller, options);
  requireBoundOperation(operation.name, caller);
}

function requireScope(
  { scope, name, tableDecides, forHookKeys, inDrafts }: Authorised,
  caller: Caller,
  { mayDraft = false }: { readonly mayDraft?: boolean } = {},
): void {
  if (scope === undefined || tableDecides === true || hasScope(caller, scope)) return;
  if (forHookKeys === true && hasHookScope(caller)) return;
  const isDrafted = mayDraft && inDrafts === true && scope === 'design';
  if (isDrafted && hasScope(caller, 'draft')) return;
  if (caller.keyId === undefined) {
    throw new Failure(
      'unauthenticated',
      `${name} needs an API key with the scope ${scope}: send it as apikey or as bearer token.`,
    );
  }
  throw new Failure(
    'forbidden',
    `This key may not call ${name}: it lacks the scope ${scope}. Use a key with this scope.`,
  );
}

/**
 * Throws `invalid` for an operation that no draft has, and `unauthenticated` or `forbidden` for a
 * caller who may not see drafts.
 */
function authoriseInDraft({ name, inDrafts }: Operation, caller: Caller): void {
  if (inDrafts !== true) {
    throw new Failure('invalid', `${name} is not possible in a draft. Leave out draft.`, {
      field: 'draft',
    });
  }
  requireScope({ name: `${name} in a draft`, scope: 'read' }, caller);
}

/**
 * The draft of a browser that previews one, for what pages read. Throws `forbidden` for what pages
 * write, because that would be live. A caller with a key is no page.
 */
function previewFor(
  { effect, scope, forPages, inDrafts }: Operation,
  { preview, caller }: Call,
): string | undefined {
  const isOfPages = inDrafts === true && (scope === 'render' || forPages === true);
  if (preview === undefined || caller.keyId !== undefined || !isOfPages) return undefined;
  if (effect === 'reads') return preview;
  throw new Failure('forbidden', 'This is the preview of a draft: its pages write nothing.');
}

/** An answer from a draft: it is for its caller alone, and for no cache. */
function unshared(result: OperationResult): OperationResult {
  if (result.kind === 'data') {
    const { forAll: _forAll, caching: _caching, ...rest } = result;
    return { ...rest, caching: notStored };
  }
  if (result.kind !== 'reply') return result;
  const { isReusable: _isReusable, isCurrent: _isCurrent, ...reply } = result.reply;
  const fields = withoutCaching(reply.fields);
  return { kind: 'reply', reply: { ...reply, fields: [...fields, ...notStored] } };
}

const notStored = ['Cache-Control', 'no-store'];

/**
 * The input without unknown fields, of which it may have only null ones; a schema with
 * `additionalProperties` takes any. Throws `invalid`.
 */
function declared(name: string, { properties, ...schema }: JsonObject, v: JsonObject): JsonObject {
  if (schema.additionalProperties === true) return v;
  const known = isJsonObject(properties) ? Object.keys(properties) : [];
  requireKnownFields(v, name, known);
  return Object.fromEntries(Object.entries(v).filter(([field]) => known.includes(field)));
}

/**
 * The input without optional fields that are null, which stands for an absent field; an empty field
 * of a form becomes null. Fields that the schema does not name, as those of a page rule, stay.
 */
function withoutNulls(v: JsonObject, { properties }: JsonObject): JsonObject {
  if (!isJsonObject(properties)) return v;
  const isAbsent = (name: string): boolean => v[name] === null && Object.hasOwn(properties, name);
  const absent = Object.keys(v).filter(isAbsent);
  if (absent.length === 0) return v;
  return Object.fromEntries(Object.entries(v).filter(([name]) => !absent.includes(name)));
}

/** Whether an operation can answer for the past, or stores any field that it gets. */
function takesMoment(operation: Operation): boolean {
  return operation.effect === 'writes' || declares(operation, 'as_of');
}

function declares({ input: { properties } }: Operation, field: string): boolean {
  return isJsonObject(properties) && properties[field] !== undefined;
}

/** An answer with the present would be wrong for a question about the past. */
function presentOnly(name: string): Failure {
  return new Failure('invalid', `${name} answers only for the present. Leave out as_of.`, {
    field: 'as_of',
  });
}

/** ajv converts an empty text to null, and the edit would not check the version. */
function emptyIfSeq(): Failure {
  return new Failure(
    'invalid',
    'if_seq is empty. Give the seq that the record must have, or leave if_seq out.',
    { field: 'if_seq' },
  );
}

function inputFailure(error: ErrorObject | undefined): Failure {
  if (error === undefined) return new Failure('invalid', 'The input is not valid.');
  const missing: unknown = error.params.missingProperty;
  const path = error.instancePath.slice(1).replaceAll('/', '.');
  if (typeof missing === 'string') {
    const field = path === '' ? missing : `${path}.${missing}`;
    return new Failure('invalid', `${field} is missing.`, { field });
  }
  const allowed: unknown = error.params.allowedValues;
  const why = Array.isArray(allowed)
    ? `has to be one of ${allowed.filter((value) => value !== null).join(', ')}`
    : (wordsOfAjv(error.message) ?? 'is not valid');
  return new Failure('invalid', `${path} ${why}.`, { field: path });
}
