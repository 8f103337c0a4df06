import type { Databases } from '../../core/log/databases.ts';
import { storedJson } from '../../core/log/encoding.ts';
import type { LogPart, OpenPart } from '../../core/log/store.ts';

/** Of the oldest sessions of `[login]`, those that a sign-in looks at to remove expired ones. */
const expiredLoginsRemovedMax = 200;

/**
 * The sessions of visitors who have signed in by `[login]` (docs/design/sign-in.md). They are in
 * the data folder of one node, where its workers and a restart find them, and no part of the log,
 * which never forgets a name.
 */
export interface LoginSessions {
  find(id: string): LoginSession | undefined;
  /** The number of changes so far. */
  changes(): number;
  /** Up to `count` sessions in the order of their beginning, from the one behind an id on. */
  list(after: string, count: number): readonly LoginSession[];
  /** The sessions with one of the hashes by which they are found. */
  readonly findBy: (hash: string) => readonly LoginSession[];
  /** The ID token of a session, for the end of the session at the provider. */
  idToken(id: string): string | undefined;
  /**
   * Stores a session; resolves when it is durable. Expired sessions go, and so do the oldest ones
   * of its person beyond `perPerson`, and the oldest of all beyond `all`.
   */
  add(
    session: LoginSession,
    more: { readonly idToken: string | undefined; readonly nowMs: number; readonly max: LoginsMax },
  ): Promise<void>;
  /** Ends sessions; resolves with those that were open. */
  end(ids: readonly string[]): Promise<readonly LoginSession[]>;
  /** The keys for cookies of started sign-ins, the newest first. */
  keys(): readonly LoginKey[];
  /** Replaces the keys by those that `decide` returns; resolves with them when that is durable. */
  changeKeys(
    decide: (keys: readonly LoginKey[]) => readonly LoginKey[],
  ): Promise<readonly LoginKey[]>;
}

/** The most sessions of a person, and of all. */
interface LoginsMax {
  readonly perPerson: number;
  readonly all: number;
}

const names = {
  session: 'login session ',
  found: 'login found ',
  token: 'login token ',
  count: 'login count',
  changes: 'login changes',
  keys: 'login keys',
} as const;

/** Whether an entry of the database `meta` belongs to these sessions. */
export function isLoginEntry(name: string): boolean {
  return name.startsWith('login ');
}

/** The sessions of visitors who have signed in by `[login]` at this node. */
export const loginSessionsPart: LogPart<LoginSessions> = { open: createLoginSessions };

function createLoginSessions({ databases: { meta }, queue }: OpenPart): LoginSessions {
  const reads = createReads(meta);
  const { find, keys, count, changes } = reads;
  const counted = (by: number): void => {
    meta.putSync(names.count, String(Math.max(0, count() + by)));
    meta.putSync(names.changes, String(changes() + 1));
  };
  const remove = (sessions: readonly LoginSession[]): void => {
    for (const { id, found } of sessions) {
      meta.removeSync(names.session + id);
      meta.removeSync(names.token + id);
      for (const hash of found) meta.removeSync(`${names.found}${hash} ${id}`);
    }
    if (sessions.length > 0) counted(-sessions.length);
  };
  return {
    ...reads,
    add: (session, { idToken, nowMs, max }) =>
      queue.write(() => {
        const ended = endedBy(session, reads, { nowMs, max });
        return () => {
          remove(ended);
          const text = JSON.stringify(session);
          meta.putSync(names.session + session.id, text);
          for (const hash of session.found) {
            meta.putSync(`${names.found}${hash} ${session.id}`, session.id);
          }
          if (idToken !== undefined) meta.putSync(names.token + session.id, idToken);
          counted(1);
          return { result: undefined, bytes: text.length + (idToken?.length ?? 0) };
        };
      }),
    end: (ids) =>
      queue.write(() => {
        const open = [...new Set(ids)].flatMap((id) => find(id) ?? []);
        return () => {
          remove(open);
          return { result: open, bytes: 0 };
        };
      }),
    changeKeys: (decide) =>
      queue.write(() => {
        const changed = decide(keys());
        return () => {
          const text = JSON.stringify(changed);
          meta.putSync(names.keys, text);
          return { result: changed, bytes: text.length };
        };
      }),
  };
}

/** The reads of LoginSessions, and the number of stored sessions. */
interface LoginReads extends Omit<LoginSessions, 'add' | 'end' | 'changeKeys'> {
  readonly count: () => number;
}

function createReads(meta: Databases['meta']): LoginReads {
  const parsed = (text: string): LoginSession => storedJson(text) as LoginSession;
  const find = (id: string): LoginSession | undefined => {
    const text = meta.get(names.session + id);
    return text === undefined ? undefined : parsed(text);
  };
  return {
    find,
    list(after, limit) {
      const start = `${names.session}${after}${after === '' ? '' : '!'}`;
      const entries = meta.getRange({ start, end: `${names.session}~`, limit });
      return [...entries].map(({ value }) => parsed(value));
    },
    findBy(hash) {
      const start = `${names.found}${hash} `;
      const entries = meta.getRange({ start, end: `${start}~` });
      return [...entries].flatMap(({ value }) => find(value) ?? []);
    },
    idToken: (id) => meta.get(names.token + id),
    count: () => Number(meta.get(names.count) ?? 0),
    changes: () => Number(meta.get(names.changes) ?? 0),
    keys() {
      const text = meta.get(names.keys);
      return text === undefined ? [] : (storedJson(text) as readonly LoginKey[]);
    },
  };
}

/** The sessions that end when another one begins, as LoginSessions.add says. */
function endedBy(
  { found }: LoginSession,
  { list, findBy, count }: LoginReads,
  { nowMs, max }: { readonly nowMs: number; readonly max: LoginsMax },
): readonly LoginSession[] {
  const oldest = list('', expiredLoginsRemovedMax);
  const expired = oldest.filter(({ expires }) => Date.parse(expires) <= nowMs);
  const ended = new Map(expired.map((one) => [one.id, one] as const));
  const own = findBy(found[0]).filter(({ id }) => !ended.has(id));
  const beyond = own.slice(0, Math.max(0, own.length + 1 - max.perPerson));
  for (const one of beyond) ended.set(one.id, one);
  if (count() - ended.size < max.all) return [...ended.values()];
  const first = oldest.find(({ id }) => !ended.has(id));
  return first === undefined ? [...ended.values()] : [...ended.values(), first];
}

/** The session of a visitor who has signed in by `[login]`, as a node stores it. */
export interface LoginSession {
  /** A UUIDv7: ids are in the order of their beginning. */
  readonly id: string;
  /** SHA-256 of the secret in the cookie, lower-case hex. */
  readonly hash: string;
  readonly user: string;
  readonly roles: readonly string[];
  readonly issuer: string;
  /** The name of its section; absent for that of `[login]`, as in sessions of older versions. */
  readonly provider?: string;
  /**
   * Hashes by which the session is found: the first is that of the subject, which identifies the
   * person; the second, if there is one, that of the session at the provider.
   */
  readonly found: readonly [string, string?];
  /** ISO 8601, UTC. */
  readonly created: string;
  readonly expires: string;
}

/** A key that seals what a browser keeps during a sign-in. */
export interface LoginKey {
  /** 32 bytes, base64. */
  readonly secret: string;
  /** Milliseconds since 1970. */
  readonly createdMs: number;
}
