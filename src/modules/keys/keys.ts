import { keyRateMax, nodeNameCharactersMax } from '../../core/config/limits.ts';
import type { Change } from '../../core/log/change.ts';
import type { LoggedDraft, Reads, Store } from '../../core/log/store.ts';
import { keyHash } from '../../core/operations/keys/authenticate.ts';
import { authorOf, defineOperation } from '../../core/operations/operation.ts';
import {
  commitOnce,
  keyedRequest,
  reportResult,
} from '../../core/operations/records/idempotency.ts';
import { vkMember } from '../../core/operations/records/schema.ts';
import { Failure } from '../../core/values/failure.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import {
  type ApiKey,
  type Scope,
  hookScopePattern,
  keyNamePattern,
  keyPrefix,
  scopes,
  tableScopePattern,
} from '../../core/values/key.ts';
import { boundsInput, boundsMembers, parseBounds } from './key-bounds.ts';
import type { KeyUseRecorder } from './key-use-recorder.ts';

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
interface ListParts extends Pick<KeyParts, 'store'> {
  readonly keyUses: Pick<KeyUseRecorder, 'last'>;
}

/** The properties of a new key. */
type NewKey = Pick<ApiKey, 'name' | 'scopes' | 'rate' | 'node' | 'origins' | 'paths'>;

/** A key without its hash. */
type KeyView = Omit<ApiKey, 'hash' | 'session' | 'login'>;

/**
 * Makes a key of 256 random bits and logs its hash (docs/design/failures.md#keys). Resolves with
 * the key itself, which is not stored. Rejects with `invalid` for the scope `follow` without node,
 * and as parseBounds.
 */
export async function addKey(
  parts: KeyParts,
  { by, ...given }: NewKey & { readonly by: string },
): Promise<KeyView & { readonly key: string }> {
  const made = makeKey(parts, requireNewKey(given));
  await parts.store.commit(by, () => ({ drafts: [made.draft], answer: () => undefined }));
  return made.shown;
}

/** A new key with its bounds in canonical form. Throws as addKey rejects. */
function requireNewKey(given: NewKey): NewKey {
  requireNode(given);
  const { origins, paths, ...others } = given;
  const bounds = parseBounds(
    { ...(origins && { origins }), ...(paths && { paths }) },
    given.scopes,
  );
  return { ...others, ...bounds };
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
  const key = reads.key(id);
  if (key !== undefined && key.session === undefined) {
    return { family: 'key', id, action: 'invalidate', data: {} };
  }
  throw new Failure('not_found', 'There is no key with this id, or it is revoked already.', {
    field: 'id',
  });
}

/** A valid key, with the time of its last use at this node: ISO 8601, UTC. */
interface ListedKey extends KeyView {
  readonly last_used: string | null;
}

/**
 * All valid keys, without their hashes; sessions are not keys of their own. `lastUses` has the
 * times by the ids of keys.
 */
export function listedKeys(
  store: Pick<Store, 'keys'>,
  lastUses: ReadonlyMap<string, string>,
): readonly ListedKey[] {
  const keys = store.keys().filter(({ session }) => session === undefined);
  return keys.map(({ hash: _hash, login: _login, ...shown }) => ({
    ...shown,
    last_used: lastUses.get(shown.id) ?? null,
  }));
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
    const { hash: _hash, session, login: _login, ...key } = { id, ...data } as unknown as ApiKey;
    const known = shown.get(id);
    if (action === 'insert' && session === undefined) shown.set(id, key);
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
  ...boundsMembers,
} as const;

const keySchema = {
  title: 'Key',
  type: 'object',
  required: ['id', 'name', 'scopes', 'created', 'last_used'],
  properties: {
    ...shownProperties,
    last_used: {
      type: ['string', 'null'],
      format: 'date-time',
      description:
        'When this node last got a request or a message of a websocket with the key or a session ' +
        'of it. The uses that other workers of the node got may be a minute late.',
    },
  },
} as const;

/**
 * key.insert: makes a key. Only this answer shows it: a repeat with the same vk makes no other key,
 * and has the answer without it. Refuses with `conflict` for the vk of another request.
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
      name: { type: 'string', pattern: keyNamePattern },
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
      ...boundsInput,
    },
  },
  run: (parts: KeyParts) => async (v, call) => {
    const { name, scopes: given, rate, node, origins, paths } = v;
    const wanted = requireNewKey({
      // The schema takes no other words.
      ...{ name, scopes: given as readonly Scope[] },
      ...(rate && { rate }),
      ...(node && { node }),
      ...(origins && { origins }),
      ...(paths && { paths }),
    });
    const made = makeKey(parts, wanted);
    const request = keyedRequest('key.insert', wanted, call);
    const by = { by: authorOf(call), via: call.via, request };
    const written = await commitOnce(parts.store, by, {
      again: (reads, seq) => keyInserted(reads.change(seq)),
      decide: (_reads, claim) => ({
        drafts: [{ ...made.draft, ...claim }],
        answer: () => made.shown,
      }),
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

/** key.list: every valid key, without its secret. */
export const listKeys = defineOperation({
  name: 'svc1.key.list',
  scope: 'admin',
  effect: 'reads',
  summary: 'Every valid API key, without the key itself, and when it was used last.',
  output: {
    title: 'KeyList',
    type: 'object',
    required: ['rows'],
    properties: { rows: { type: 'array', items: keySchema } },
  },
  input: { type: 'object' },
  run:
    ({ store, keyUses }: ListParts) =>
    () => ({ kind: 'data', data: { rows: listedKeys(store, keyUses.last()) } }),
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
