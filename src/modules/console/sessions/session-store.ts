import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import type { ChangeAuthor } from '../../../core/log/change.ts';
import type { Decision, LoggedDraft, Reads, Store } from '../../../core/log/store.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { ApiKey } from '../../../core/values/key.ts';
import { localSessionsPart } from './local-sessions.ts';
import { loginSessionsPart } from '../../login/stored-sessions.ts';

/** The most sessions of a node with a centre, outside of its log; another one ends the oldest. */
const localSessionsMax = 200;

/** Reads keys and sessions of a node, and changes sessions. */
export interface SessionStore extends Pick<Store, 'key' | 'keys' | 'keyByHash' | 'commit'> {
  /** Whether a session needs the text of its key, to pass writes on to the centre. */
  readonly passesOn: boolean;
  /** Whether the session of a visitor is open, with which the console was opened. */
  isLoginOpen(id: string): boolean;
}

/** The sessions of a node with a log of its own: rows of the log. */
export function loggedSessions(store: Store): SessionStore {
  return { ...store, passesOn: false, isLoginOpen: (id) => isOpen(store, id) };
}

/**
 * The sessions of a node that follows a centre: those of the centre are in the log, its own in
 * another database (docs/design/console.md#sessions-at-a-follower).
 */
export function followerSessions(store: Store): SessionStore {
  const localSessions = store.part(localSessionsPart);
  const local = (is: (one: ApiKey) => boolean): ApiKey | undefined => localSessions.all().find(is);
  const reads = {
    key: (id: string) => store.key(id) ?? local((one) => one.id === id),
    keyByHash: (hash: string) => store.keyByHash(hash) ?? local((one) => one.hash === hash),
    keys: () => [
      ...store.keys().filter(({ session }) => session === undefined),
      ...localSessions.all(),
    ],
  };
  return {
    ...reads,
    passesOn: true,
    isLoginOpen: (id) => isOpen(store, id),
    commit: <T>(_author: ChangeAuthor, decide: (reads: Reads) => Decision<T>) =>
      localSessions.change(() => {
        const { drafts, answer } = decide({ ...store, ...reads });
        const sessions = drafts.reduce(folded, localSessions.all());
        return { sessions: sessions.slice(-localSessionsMax), result: answer([]) };
      }),
  };
}

/** A session of the console ends no later than that of its visitor: its time is not asked. */
function isOpen({ part }: Pick<Store, 'part'>, id: string): boolean {
  return part(loginSessionsPart).find(id) !== undefined;
}

/** The sessions after a draft of the operations on sessions. */
function folded(sessions: readonly ApiKey[], { id, action, data }: LoggedDraft): readonly ApiKey[] {
  if (action === 'insert') return [...sessions, { id, ...data } as unknown as ApiKey];
  if (sessions.some((one) => one.id === id)) return sessions.filter((one) => one.id !== id);
  throw new Failure('not_found', 'This session was made by the centre: end it there.', {
    field: 'id',
  });
}

/**
 * Encrypts the text of a key with the secrets of a session, so that only its requests have it;
 * `nonce` is 12 random bytes.
 */
export function sealKey(apikey: string, secrets: string, nonce: Buffer): string {
  const cipher = createCipheriv('aes-256-gcm', sealingKey(secrets), nonce);
  const sealed = Buffer.concat([cipher.update(apikey, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64');
}

/** Decrypts what `sealKey` has made with the same secrets. */
export function openKey(sealed: string, secrets: string): string {
  const bytes = Buffer.from(sealed, 'base64');
  const decipher = createDecipheriv('aes-256-gcm', sealingKey(secrets), bytes.subarray(0, 12), {
    authTagLength: 16,
  });
  decipher.setAuthTag(bytes.subarray(12, 28));
  return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8');
}

/**
 * A key of 256 bits from the secrets of a session; the data folder has only the SHA-256 of these.
 */
function sealingKey(secrets: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secrets, '', 'waymark session key', 32));
}
