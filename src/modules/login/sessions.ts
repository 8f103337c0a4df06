import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { LoginConfig } from '../../core/config/config.ts';
import { createLruCache } from '../../core/values/lru-cache.ts';
import { KIB } from '../../core/values/units.ts';
import { cookieNames, cookieValues } from './cookies.ts';
import { ownLoginName } from './section.ts';
import type { LoginSession, LoginSessions } from './stored-sessions.ts';

/** Sessions of one person, and of all; the oldest ones end. */
const sessionsPerPersonMax = 20;
const loginSessionsMax = 100_000;

/** Sessions in the memory of a process, so that not each request reads and hashes again. */
const sessionsRememberedMax = 2_000;

/** Characters of an ID token that is stored for the sign-out at the provider. */
const idTokenCharactersMax = 8 * KIB;

/** A person who has signed in at the provider. */
export interface SignedIn {
  readonly user: string;
  readonly roles: readonly string[];
  /** The subject, which identifies the person at the provider. */
  readonly subject: string;
  /** The session at the provider. */
  readonly providerSession: string | undefined;
  readonly idToken: string;
}

/** Begins and finds the sessions of the providers that are configured. */
export interface SessionRegister {
  /** Begins a session; resolves with it and with the value of its cookie. */
  begin(
    person: SignedIn,
    provider: LoginConfig,
  ): Promise<{ readonly session: LoginSession; readonly cookie: string }>;
  /** The open session of the cookies of a request to an origin, or to one with a scheme. */
  find(cookie: string | undefined, origin: string): LoginSession | undefined;
  /** The open session with an id. */
  open(id: string): LoginSession | undefined;
  /** The sessions of a subject, or of a session at a provider. */
  findBy(
    kind: 'subject' | 'session',
    value: string,
    provider: LoginConfig,
  ): readonly LoginSession[];
  idToken(id: string): string | undefined;
  end(ids: readonly string[]): Promise<readonly LoginSession[]>;
}

const cookiePattern = /^([0-9a-f-]{36})\.([\w-]{43})$/;

/**
 * Creates the register. A cookie is the id of its session and 256 random bits, of which the data
 * folder has the SHA-256 only. Sessions that were found are remembered by their cookies until any
 * process begins or ends a session.
 */
export function createSessionRegister(
  store: LoginSessions,
  {
    providers,
    newId,
    now,
  }: {
    readonly providers: readonly LoginConfig[];
    readonly newId: () => string;
    readonly now: () => number;
  },
): SessionRegister {
  const issuers = new Map(providers.map(({ name, issuer }) => [name, issuer]));
  const foundBy = (issuer: string, kind: string, value: string): string =>
    digest(`${issuer} ${kind} ${value}`);
  const isOpen = (session: LoginSession): boolean =>
    Date.parse(session.expires) > now() && issuers.get(providerOf(session)) === session.issuer;
  const open = (id: string): LoginSession | undefined => {
    const session = store.find(id);
    return session !== undefined && isOpen(session) ? session : undefined;
  };
  const remembered = createLruCache<LoginSession>(sessionsRememberedMax);
  let upTo = -1;
  const verified = (value: string): LoginSession | undefined => {
    const [, id, secret = ''] = cookiePattern.exec(value) ?? [];
    const session = id === undefined ? undefined : store.find(id);
    if (session === undefined || !isEqual(session.hash, digest(secret))) return undefined;
    remembered.set(value, session);
    return session;
  };
  return {
    async begin({ user, roles, subject, providerSession, idToken }, { name, issuer, lifetimeMs }) {
      const secret = randomBytes(32).toString('base64url');
      const nowMs = now();
      const found = [foundBy(issuer, 'subject', subject)] as const;
      const session: LoginSession = {
        ...{ id: newId(), hash: digest(secret), user, roles, issuer, provider: name },
        found:
          providerSession === undefined
            ? found
            : [...found, foundBy(issuer, 'session', providerSession)],
        created: new Date(nowMs).toISOString(),
        expires: new Date(nowMs + lifetimeMs).toISOString(),
      };
      await store.add(session, {
        idToken: idToken.length > idTokenCharactersMax ? undefined : idToken,
        nowMs,
        max: { perPerson: sessionsPerPersonMax, all: loginSessionsMax },
      });
      return { session, cookie: `${session.id}.${secret}` };
    },
    find(cookie, origin) {
      const values = cookieValues(cookie, cookieNames(origin).session);
      if (values.length === 0) return undefined;
      const changes = store.changes();
      if (changes !== upTo) remembered.clear();
      upTo = changes;
      for (const value of values) {
        const session = remembered.get(value) ?? verified(value);
        if (session !== undefined && isOpen(session)) return session;
      }
      return undefined;
    },
    open,
    findBy: (kind, value, { name, issuer }) =>
      store.findBy(foundBy(issuer, kind, value)).filter((one) => providerOf(one) === name),
    idToken: (id) => store.idToken(id),
    end: (ids) => store.end(ids),
  };
}

/** The name of the provider of a session. */
export function providerOf({ provider = ownLoginName }: Pick<LoginSession, 'provider'>): string {
  return provider;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function isEqual(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(one), Buffer.from(other));
}
