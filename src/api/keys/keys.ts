import { Failure } from '../../model/failure.ts';
import { keyNamePattern, keyPrefix, scopes, type ApiKey } from '../../model/key.ts';
import type { JsonObject } from '../../model/json.ts';
import { keyRateMax } from '../../config/limits.ts';
import type { Store } from '../../store/store.ts';
import { keyHash } from './authenticate.ts';
import { authorOf, type Handler } from '../operation.ts';

/**
 * What the operations on keys stand on; `randomBytes` gives secrets, `now` milliseconds since 1970.
 */
export interface KeyOperations {
  readonly store: Store;
  readonly newId: () => string;
  readonly randomBytes: (count: number) => Buffer;
  readonly now: () => number;
}

/** What whoever makes a key says of it. */
type NewKey = Pick<ApiKey, 'name' | 'scopes' | 'rate'>;

/** A key as it can be shown at any time: without its hash. */
type KeyView = Omit<ApiKey, 'hash'>;

/**
 * Makes a key of 256 random bits and logs its hash. Resolves with the key itself, which nothing can
 * show again (docs/design/failures.md#keys).
 */
export async function addKey(
  { store, newId, randomBytes, now }: KeyOperations,
  { by, ...given }: NewKey & { readonly by: string },
): Promise<KeyView & { readonly key: string }> {
  const id = newId();
  const key = `${keyPrefix}${randomBytes(32).toString('base64url')}`;
  const made = { ...given, created: new Date(now()).toISOString() };
  await store.commit(by, () => ({
    drafts: [
      {
        family: 'key',
        id,
        action: 'insert',
        data: { ...made, scopes: [...made.scopes], hash: keyHash(key) },
      },
    ],
    answer: () => undefined,
  }));
  return { id, ...made, key };
}

/** Revokes a key for good. Rejects with `not_found`. */
export async function revokeKey(store: Store, id: string, by: string): Promise<void> {
  await store.commit(by, (reads) => {
    if (reads.key(id) === undefined) {
      throw new Failure('not_found', 'There is no key of that id, or it is revoked already.', {
        field: 'id',
      });
    }
    return {
      drafts: [{ family: 'key', id, action: 'invalidate', data: {} }],
      answer: () => undefined,
    };
  });
}

/** All keys in force, without their hashes. */
export function keyViews(store: Pick<Store, 'keys'>): readonly KeyView[] {
  return store.keys().map(({ hash: _hash, ...shown }) => shown);
}

/** A key that is no more in force, and by whom and when it was ended: ISO 8601, UTC. */
interface RevokedKey extends KeyView {
  readonly revoked: string;
  readonly revoked_by: string;
}

/** All keys that have been revoked, oldest first; reads the whole log, which alone knows them. */
export function revokedKeys(reads: Pick<Store, 'seq' | 'change'>): readonly RevokedKey[] {
  const shown = new Map<string, KeyView>();
  const revoked: RevokedKey[] = [];
  for (let seq = 1, newest = reads.seq(); seq <= newest; seq += 1) {
    const change = reads.change(seq);
    if (change?.family !== 'key') continue;
    const { id, action, data, by, dtu_stored: at } = change;
    const { hash: _hash, ...key } = { id, ...data } as unknown as ApiKey;
    const known = shown.get(id);
    if (action === 'insert') shown.set(id, key);
    else if (action === 'invalidate' && known !== undefined) {
      revoked.push({ ...known, revoked: at, revoked_by: by });
    }
  }
  return revoked;
}

const shownProperties = {
  id: { type: 'string' },
  name: { type: 'string' },
  scopes: { type: 'array', items: { type: 'string', enum: scopes } },
  created: { type: 'string', format: 'date-time' },
  rate: { type: 'integer', description: 'Operations a second that it may call.' },
} as const;

const keySchema: JsonObject = {
  title: 'Key',
  type: 'object',
  required: ['id', 'name', 'scopes', 'created'],
  properties: shownProperties,
};

/** key.insert: answers the new key, once. */
export function insertKey(parts: KeyOperations): Handler<NewKey> {
  return {
    summary: 'Makes an API key, and answers it this one time.',
    output: {
      title: 'NewKey',
      type: 'object',
      required: ['id', 'name', 'scopes', 'created', 'key'],
      properties: {
        ...shownProperties,
        key: { type: 'string', description: 'The key itself, which nothing can show again.' },
      },
    },
    input: {
      type: 'object',
      required: ['name', 'scopes'],
      properties: {
        name: { type: 'string', pattern: keyNamePattern },
        scopes: {
          type: 'array',
          minItems: 1,
          uniqueItems: true,
          items: { type: 'string', enum: scopes },
        },
        rate: {
          type: 'integer',
          minimum: 1,
          maximum: keyRateMax,
          nullable: true,
          description: 'Operations a second that the key may call.',
        },
      },
    },
    run: async ({ name, scopes, rate }, call) => ({
      kind: 'data',
      data: await addKey(parts, { name, scopes, ...(rate && { rate }), by: authorOf(call) }),
    }),
  };
}

/** key.list: every key in force, without its secret. */
export function listKeys({ store }: KeyOperations): Handler<object> {
  return {
    summary: 'Every API key in force, without the key itself.',
    output: {
      title: 'KeyList',
      type: 'object',
      required: ['rows'],
      properties: { rows: { type: 'array', items: keySchema } },
    },
    input: { type: 'object' },
    run: () => ({ kind: 'data', data: { rows: keyViews(store) } }),
  };
}

/** key.revoke: ends a key at once and for good. */
export function revokeKeyById({ store }: KeyOperations): Handler<{ id: string }> {
  return {
    summary: 'Ends an API key at once and for good.',
    failures: ['not_found'],
    output: {
      title: 'RevokedKey',
      type: 'object',
      required: ['id', 'revoked'],
      properties: { id: { type: 'string' }, revoked: { const: true } },
    },
    input: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } },
    run: async ({ id }, call) => {
      await revokeKey(store, id, authorOf(call));
      return { kind: 'data', data: { id, revoked: true } };
    },
  };
}
