import { keyRateMax, nodeNameCharactersMax } from '../../core/config/limits.ts';
import { type Change, mergeFields } from '../../core/log/change.ts';
import type { LoggedDraft, Reads, Store } from '../../core/log/store.ts';
import { keyHash } from '../../core/operations/keys/authenticate.ts';
import { authorOf, defineOperation } from '../../core/operations/operation.ts';
import {
  commitOnce,
  keyedRequest,
  reportResult,
} from '../../core/operations/records/idempotency.ts';
import { vkMember } from '../../core/operations/records/schema.ts';
import { Failure, failureFrom } from '../../core/values/failure.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import {
  type ApiKey,
  type Caller,
  type Scope,
  hookScopePattern,
  isApiKey,
  keyEndMs,
  keyNamePattern,
  keyPrefix,
  scopes,
  tableScopePattern,
} from '../../core/values/key.ts';
import { parseNamedMoment } from '../../core/values/time.ts';
import { boundsInput, boundsMembers, parseBounds } from './key-bounds.ts';
import type { KeyUseRecorder } from './key-use-recorder.ts';

/** Characters of a moment, with the longest name of a time zone. */
export const endCharactersMax = 64;

/**
 * The parts that the operations on keys need. `now` is in milliseconds since 1970.
 */
interface KeyParts {
  readonly store: Store;
  readonly newId: () => string;
  readonly randomBytes: (count: number) => Buffer;
  readonly now: () => number;
}

/** The parts that key.list needs. */
interface ListParts extends Pick<KeyParts, 'store' | 'now'> {
  readonly keyUses: Pick<KeyUseRecorder, 'last'>;
}

/** The properties of a new key. */
type NewKey = Pick<ApiKey, 'name' | 'scopes' | 'rate' | 'node' | 'until' | 'origins' | 'paths'>;

/** A key without its hash. */
type KeyView = Omit<ApiKey, 'hash' | 'session' | 'login' | 'breadcrumb' | 'revoked'>;

/**
 * Makes a key of 256 random bits and logs its hash (docs/design/failures.md#keys). Resolves with
 * the key itself, which is not stored. Rejects with `invalid` for the scope `follow` without node,
 * for an end that has passed, and as parseBounds.
 */
export async function addKey(
  parts: KeyParts,
  { by, ...given }: NewKey & { readonly by: string },
): Promise<KeyView & { readonly key: string }> {
  const wanted = requireNewKey(given);
  requireComing(wanted.until, parts.now());
  const made = makeKey(parts, wanted);
  await parts.store.commit(by, () => ({ drafts: [made.draft], answer: () => undefined }));
  return made.shown;
}

/** A new key with its end and bounds in canonical form. Throws as addKey rejects. */
function requireNewKey(given: NewKey): NewKey {
  requireNode(given);
  const { origins, paths, until, ...others } = given;
  const bounds = parseBounds(
    { ...(origins && { origins }), ...(paths && { paths }) },
    given.scopes,
  );
  const end = until === undefined ? undefined : parseEnd(until);
  return { ...others, ...(end !== undefined && { until: end }), ...bounds };
}

/** How a request says that a key has no end. */
export const endless = 'never';

/** The end of a key in UTC; undefined for `never`. Throws `invalid` for another text. */
export function parseEnd(text: string): string | undefined {
  if (text === endless) return undefined;
  try {
    return parseNamedMoment(text, undefined).at;
  } catch (thrown) {
    throw new Failure('invalid', failureFrom(thrown).message, { field: 'until' });
  }
}

/** Throws `invalid` for the end of a key that has passed. */
export function requireComing(until: string | undefined, nowMs: number): void {
  if (keyEndMs({ ...(until !== undefined && { until }) }) > nowMs) return;
  const message = `${until ?? ''} has passed: it is ${new Date(nowMs).toISOString()} now.`;
  throw new Failure('invalid', message, { field: 'until' });
}

/**
 * Throws `forbidden` for an end of `what` after that of the caller's own key: that would outlive
 * whom it was given to.
 */
export function requireEndWithin(
  reads: Pick<Reads, 'key'>,
  { keyId }: Pick<Caller, 'keyId'>,
  what: { readonly name: 'key' | 'token'; readonly until: string | undefined },
): void {
  const own = keyId === undefined ? undefined : reads.key(keyId);
  const { name, until } = what;
  if (own === undefined || keyEndMs({ ...(until !== undefined && { until }) }) <= keyEndMs(own)) {
    return;
  }
  const message = `Your key ends at ${own.until ?? ''}, and no ${name} of it ends later.`;
  throw new Failure('forbidden', message, { field: 'until' });
}

/** As addKey, but makes no key if there is one; of several nodes, one makes it. */
export async function addFirstKey(
  parts: KeyParts,
  { by, ...given }: NewKey & { readonly by: string },
): Promise<string | undefined> {
  if (parts.store.counts().keys > 0) return undefined;
  const { draft, shown } = makeKey(parts, given);
  const isMade = await parts.store.commit(by, (reads) => {
    const isFirst = reads.keys().length === 0;
    return { drafts: isFirst ? [draft] : [], answer: () => isFirst };
  });
  return isMade ? shown.key : undefined;
}

function makeKey(
  { newId, randomBytes, now }: Omit<KeyParts, 'store'>,
  given: NewKey,
): { readonly draft: LoggedDraft; readonly shown: KeyView & { readonly key: string } } {
  const id = newId();
  const key = `${keyPrefix}${randomBytes(32).toString('base64url')}`;
  const made = { ...given, created: new Date(now()).toISOString() };
  const data: JsonObject = { ...(made as unknown as JsonObject), hash: keyHash(key) };
  return { draft: { family: 'key', id, action: 'insert', data }, shown: { id, ...made, key } };
}

/** A key with which a node follows the log belongs to one node. */
function requireNode({ scopes: given, node }: Pick<NewKey, 'scopes' | 'node'>): void {
  if (given.includes('follow') === (node !== undefined)) return;
  const message =
    node === undefined
      ? 'A key of the scope follow needs `node`, the name of the node that may use it.'
      : 'Only a key of the scope follow has a `node`.';
  throw new Failure('invalid', message, { field: 'node' });
}

/** Revokes a key for good. Rejects with `not_found`. */
export async function revokeKey(store: Store, id: string, by: string): Promise<void> {
  await store.commit(by, (reads) => ({ drafts: [revocation(reads, id)], answer: () => undefined }));
}

/** The draft of a revocation. Throws `not_found`. */
function revocation(reads: Pick<Reads, 'key'>, id: string): LoggedDraft {
  requireKey(reads, id);
  return { family: 'key', id, action: 'invalidate', data: {} };
}

/** A key that is not revoked; sessions and tokens are none. Throws `not_found`. */
function requireKey(reads: Pick<Reads, 'key'>, id: string): ApiKey {
  const key = reads.key(id);
  if (key !== undefined && isApiKey(key)) return key;
  throw new Failure('not_found', 'There is no key with this id, or it is revoked already.', {
    field: 'id',
  });
}

/** A key that is not revoked, with the time of its last use at this node: ISO 8601, UTC. */
interface ListedKey extends KeyView {
  readonly state: KeyState;
  readonly last_used: string | null;
}

/** `ending` for a key that ends within two weeks, or a sixth of its life if that is less. */
export const keyStates = ['valid', 'ending', 'ended'] as const;

type KeyState = (typeof keyStates)[number];

/** How long before its end a key is told to end. */
const keyWarnMs = 14 * 86_400_000;

/** Whether a key has ended or soon will, at a time in milliseconds since 1970. */
export function keyState(key: Pick<ApiKey, 'created' | 'until'>, nowMs: number): KeyState {
  const endMs = keyEndMs(key);
  if (endMs <= nowMs) return 'ended';
  const lifeMs = endMs - Date.parse(key.created);
  return endMs - nowMs < Math.min(keyWarnMs, lifeMs / 6) ? 'ending' : 'valid';
}

/** The numbers of keys that have ended, and that soon will. */
export function countEnds(
  store: Pick<Store, 'keys'>,
  nowMs: number,
): Readonly<Record<'ending' | 'ended', number>> {
  const states = apiKeys(store).map((key) => keyState(key, nowMs));
  const count = (state: KeyState): number => states.filter((one) => one === state).length;
  return { ending: count('ending'), ended: count('ended') };
}

/** What keys are shown with: the times of their last uses by their ids, and the time now. */
interface KeyTimes {
  readonly lastUses: ReadonlyMap<string, string>;
  readonly nowMs: number;
}

/**
 * All keys that are not revoked, without their hashes; sessions and tokens are not keys of their
 * own.
 */
export function listedKeys(store: Pick<Store, 'keys'>, times: KeyTimes): readonly ListedKey[] {
  return apiKeys(store).map((key) => listedKey(key, times));
}

function apiKeys(store: Pick<Store, 'keys'>): readonly ApiKey[] {
  return store.keys().filter(isApiKey);
}

/** A key that is not revoked, without its hash. Throws `not_found`. */
export function readKey(store: Pick<Store, 'key'>, id: string, times: KeyTimes): ListedKey {
  return listedKey(requireKey(store, id), times);
}

function listedKey(key: ApiKey, { lastUses, nowMs }: KeyTimes): ListedKey {
  const { hash: _hash, session: _session, login: _login, ...shown } = key;
  const state = keyState(key, nowMs);
  return { ...shown, state, last_used: lastUses.get(key.id) ?? null };
}

/** Changes the name or the end of a key. Rejects with `not_found`, and `invalid` as addKey does. */
export async function editKey(
  { store, now }: Pick<KeyParts, 'store' | 'now'>,
  id: string,
  { by, ...edit }: KeyEdit & { readonly by: string },
): Promise<void> {
  const data = editData(edit);
  await store.commit(by, (reads) => ({
    drafts: [edition({ reads, id, data }, now())],
    answer: () => undefined,
  }));
}

/** The draft of an edit. Throws `not_found`, and `invalid` for an end that has passed. */
function edition(
  { reads, id, data }: { readonly reads: Pick<Reads, 'key'>; id: string; data: JsonObject },
  nowMs: number,
): LoggedDraft {
  requireKey(reads, id);
  if (typeof data.until === 'string') requireComing(data.until, nowMs);
  return { family: 'key', id, action: 'edit', data };
}

/** What an edit changes; an end may be `never`. */
interface KeyEdit {
  readonly name?: string | undefined;
  readonly until?: string | undefined;
}

/** The fields that an edit logs: null removes one. Throws `invalid` for none, and as parseEnd. */
function editData({ name, until }: KeyEdit): JsonObject {
  if (name === undefined && until === undefined) {
    throw new Failure('invalid', 'Say what to change: name or until.', { field: 'until' });
  }
  return {
    ...(name !== undefined && { name }),
    ...(until !== undefined && { until: parseEnd(until) ?? null }),
  };
}

function edited<Key extends KeyView>(key: Key, data: JsonObject): Key {
  return mergeFields(key, data) as unknown as Key;
}

/** A revoked key, with the time (ISO 8601, UTC) and the author of the revocation. */
interface RevokedKey extends KeyView {
  readonly revoked: string;
  readonly revoked_by: string;
}

/** All revoked keys, oldest first; reads the whole log, because only the log has them. */
export function revokedKeys(reads: Pick<Store, 'seq' | 'change'>): readonly RevokedKey[] {
  const shown = new Map<string, KeyView>();
  const revoked: RevokedKey[] = [];
  for (let seq = 1, newest = reads.seq(); seq <= newest; seq += 1) {
    const change = reads.change(seq);
    if (change?.family !== 'key') continue;
    const { id, action, data, by, dtu_stored: at } = change;
    const made = { id, ...data } as unknown as ApiKey;
    const { hash: _hash, session: _session, login: _login, ...key } = made;
    const known = shown.get(id);
    if (action === 'insert' && isApiKey(made)) shown.set(id, key);
    else if (action === 'edit' && known !== undefined) shown.set(id, edited(known, data));
    else if (action === 'invalidate' && known !== undefined) {
      revoked.push({ ...known, revoked: at, revoked_by: by });
    }
  }
  return revoked;
}

const scopeSchema = {
  type: 'string',
  anyOf: [{ enum: scopes }, { pattern: tableScopePattern }, { pattern: hookScopePattern }],
  description:
    'A scope; record.read and record.write also for one table (record.read:products), verify ' +
    'also for the deliveries of one webhook (verify:<id>).',
} as const;

/** JSON Schema of a list of scopes. */
export const scopesSchema = { type: 'array', items: scopeSchema } as const;

const shownProperties = {
  id: { type: 'string' },
  name: { type: 'string' },
  scopes: scopesSchema,
  created: { type: 'string', format: 'date-time' },
  rate: { type: 'integer', description: 'Operations a second that it may call.' },
  node: { type: 'string', description: 'The node that may use it for the scope follow.' },
  until: { type: 'string', format: 'date-time', description: 'When it ends; without, never.' },
  ...boundsMembers,
} as const;

const keySchema = {
  title: 'Key',
  type: 'object',
  required: ['id', 'name', 'scopes', 'created', 'state', 'last_used'],
  properties: {
    ...shownProperties,
    state: {
      type: 'string',
      enum: keyStates,
      description:
        'ending if it ends within two weeks, or a sixth of its life if that is less; ended if ' +
        'that has passed.',
    },
    last_used: {
      type: ['string', 'null'],
      format: 'date-time',
      description:
        'When this node last got a request or a message of a websocket with the key or a session ' +
        'of it. The uses that other workers of the node got may be a minute late.',
    },
  },
} as const;

const nameSchema = { type: 'string', pattern: keyNamePattern } as const;

const untilSchema = {
  type: 'string',
  minLength: 1,
  maxLength: endCharactersMax,
  nullable: true,
  description:
    'When the key ends: a date-time with an offset such as 2026-12-01T07:00Z, or the local time ' +
    'of a time zone such as 2026-12-01T08:00[Europe/Berlin]; never for no end.',
} as const;

/**
 * key.insert: makes a key. Only this answer shows it: a repeat with the same vk makes no other key,
 * and has the answer without it. Refuses with `conflict` for the vk of another request, and
 * `forbidden` for an end after that of the caller's key.
 */
export const insertKey = defineOperation({
  name: 'svc1.key.insert',
  scope: 'admin',
  effect: 'writes',
  summary: 'Makes an API key. Only this answer shows it.',
  envelope: { vk: vkMember },
  output: {
    title: 'NewKey',
    type: 'object',
    required: ['id', 'name', 'scopes', 'created'],
    properties: {
      ...shownProperties,
      key: {
        type: 'string',
        description: 'The key itself. Only this answer shows it, and no repeat with its vk.',
      },
    },
  },
  failures: ['conflict'],
  input: {
    type: 'object',
    required: ['name', 'scopes'],
    properties: {
      name: nameSchema,
      scopes: {
        type: 'array',
        minItems: 1,
        uniqueItems: true,
        items: scopeSchema,
      },
      rate: {
        type: 'integer',
        minimum: 1,
        maximum: keyRateMax,
        nullable: true,
        description: 'Operations a second that the key may call.',
      },
      node: {
        type: 'string',
        minLength: 1,
        maxLength: nodeNameCharactersMax,
        nullable: true,
        description: 'For the scope follow: the name of the node that may use the key.',
      },
      until: untilSchema,
      ...boundsInput,
    },
  },
  run: (parts: KeyParts) => async (v, call) => {
    const { name, scopes: given, rate, node, until, origins, paths } = v;
    const wanted = requireNewKey({
      // The schema takes no other words.
      ...{ name, scopes: given as readonly Scope[] },
      ...(rate && { rate }),
      ...(node && { node }),
      ...(until && { until }),
      ...(origins && { origins }),
      ...(paths && { paths }),
    });
    const made = makeKey(parts, wanted);
    const request = keyedRequest('key.insert', wanted, call);
    const by = { by: authorOf(call), via: call.via, request };
    const written = await commitOnce(parts.store, by, {
      again: (reads, seq) => keyInserted(reads.change(seq)),
      decide: (reads, claim) => {
        requireComing(wanted.until, parts.now());
        requireEndWithin(reads, call.caller, { name: 'key', until: wanted.until });
        return { drafts: [{ ...made.draft, ...claim }], answer: () => made.shown };
      },
    });
    const { data, ...result } = reportResult(written, request);
    return { ...result, data: data as unknown as KeyView & { readonly key?: string } };
  },
});

/** The key that a change has made, without its text and hash. */
function keyInserted(change: Change | undefined): JsonObject {
  if (change === undefined) throw new TypeError('the store logged no change');
  const { hash: _hash, ...shown } = change.data;
  return { id: change.id, ...shown };
}

/** key.list: every key that is not revoked, without its secret. */
export const listKeys = defineOperation({
  name: 'svc1.key.list',
  scope: 'admin',
  effect: 'reads',
  summary: 'Every API key that is not revoked, when it ends, and when it was used last.',
  output: {
    title: 'KeyList',
    type: 'object',
    required: ['rows'],
    properties: { rows: { type: 'array', items: keySchema } },
  },
  input: { type: 'object' },
  run:
    ({ store, ...parts }: ListParts) =>
    () => ({ kind: 'data', data: { rows: listedKeys(store, timesOf(parts)) } }),
});

/** key.read: a key that is not revoked, without its secret. Refuses with `not_found`. */
export const readKeyById = defineOperation({
  name: 'svc1.key.read',
  scope: 'admin',
  effect: 'reads',
  summary: 'An API key that is not revoked, when it ends, and when it was used last.',
  failures: ['not_found'],
  output: keySchema,
  input: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } },
  run:
    ({ store, ...parts }: ListParts) =>
    ({ id }) => ({ kind: 'data', data: readKey(store, id, timesOf(parts)) }),
});

function timesOf({ keyUses, now }: Omit<ListParts, 'store'>): KeyTimes {
  return { lastUses: keyUses.last(), nowMs: now() };
}

/**
 * key.edit: changes the name or the end of a key, also of one that has ended. Refuses with
 * `not_found`, with `invalid` for an end that has passed, and with `forbidden` for one after
 * that of the caller's key.
 */
export const editKeyById = defineOperation({
  name: 'svc1.key.edit',
  scope: 'admin',
  effect: 'writes',
  summary: 'Changes the name of an API key, or when it ends.',
  envelope: { vk: vkMember },
  failures: ['not_found', 'conflict'],
  output: keySchema,
  input: {
    type: 'object',
    required: ['id'],
    properties: {
      id: { type: 'string' },
      name: { ...nameSchema, nullable: true },
      until: untilSchema,
    },
  },
  run:
    ({ store, ...parts }: ListParts) =>
    async ({ id, name, until }, call) => {
      const data = editData({ name, until });
      const request = keyedRequest('key.edit', { id, ...data }, call);
      const by = { by: authorOf(call), via: call.via, request };
      const written = await commitOnce(store, by, {
        again: () => ({ id }),
        decide(reads, claim) {
          const drafts = [{ ...edition({ reads, id, data }, parts.now()), ...claim }];
          const end = until === undefined ? undefined : { until: parseEnd(until) };
          if (end !== undefined) requireEndWithin(reads, call.caller, { name: 'key', ...end });
          return { drafts, answer: () => ({ id }) };
        },
      });
      const key = readKey(store, id, timesOf(parts));
      return { ...reportResult(written, request), data: key };
    },
});

/** key.revoke: revokes a key at once and for good. */
export const revokeKeyById = defineOperation({
  name: 'svc1.key.revoke',
  scope: 'admin',
  effect: 'writes',
  summary: 'Revokes an API key at once and for good.',
  envelope: { vk: vkMember },
  failures: ['not_found', 'conflict'],
  output: {
    title: 'RevokedKey',
    type: 'object',
    required: ['id', 'revoked'],
    properties: { id: { type: 'string' }, revoked: { const: true } },
  },
  input: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } },
  run:
    ({ store }: Pick<KeyParts, 'store'>) =>
    async ({ id }, call) => {
      const request = keyedRequest('key.revoke', { id }, call);
      const by = { by: authorOf(call), via: call.via, request };
      const written = await commitOnce(store, by, {
        again: () => ({ id }),
        decide: (reads, claim) => ({
          drafts: [{ ...revocation(reads, id), ...claim }],
          answer: () => ({ id }),
        }),
      });
      return { ...reportResult(written, request), data: { id, revoked: true as const } };
    },
});
