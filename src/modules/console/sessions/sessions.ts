import type { FieldList } from '../../../core/http/reply.ts';
import type { LoggedDraft } from '../../../core/log/store.ts';
import {
  type Authenticate,
  isExpired,
  keyHash,
  newSessionSecrets,
  sessionCookieName,
} from '../../../core/operations/keys/authenticate.ts';
import type { KeyRates } from '../../../core/operations/keys/key-rates.ts';
import {
  type Call,
  type OperationResult,
  defineOperation,
} from '../../../core/operations/operation.ts';
import type { Bounds } from '../../../core/values/bounds.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import type { StaticOutput } from '../../../core/values/json/static.ts';
import { type ApiKey, type Scope, hasScope, keyEndMs } from '../../../core/values/key.ts';
import { boundsMembers } from '../../keys/key-bounds.ts';
import { scopesSchema } from '../../keys/keys.ts';
import type { Login } from '../../login/login.ts';
import type { LoginSession } from '../../login/stored-sessions.ts';
import type { ViewConfig } from '../../rules/operations/rule-view.ts';
import { type SessionStore, sealKey } from './session-store.ts';

/**
 * session.authenticate: gives a websocket an API key, because browsers cannot set header fields on
 * an upgrade. Refuses with `unauthenticated` or `rate_limited`; the websocket then keeps the caller
 * that it had.
 */
export const authenticateSession = defineOperation({
  name: 'svc1.session.authenticate',
  scope: undefined,
  effect: 'writes',
  summary: 'Gives a websocket its API key; a browser cannot send it with the upgrade.',
  output: {
    title: 'Session',
    type: 'object',
    required: ['scopes'],
    properties: { scopes: scopesSchema },
  },
  input: { type: 'object', required: ['apikey'], properties: { apikey: { type: 'string' } } },
  run:
    ({ authenticate }: { readonly authenticate: Authenticate }) =>
    ({ apikey }, call) => {
      const { address } = call.caller;
      const caller = authenticate({ apikey, address, cookie: call.fields.cookie });
      return { kind: 'data', data: { scopes: [...caller.scopes] }, caller };
    },
});

/**
 * session.unsubscribe: ends the subscriptions of a websocket that answered requests with this
 * id began. No packet follows the answer. An HTTP request has none to end.
 */
export const unsubscribeSession = defineOperation({
  name: 'svc1.session.unsubscribe',
  scope: undefined,
  effect: 'writes',
  summary: 'Ends the subscriptions of a websocket that requests with this id began.',
  output: { title: 'Unsubscribed', type: 'object', properties: {} },
  input: {
    type: 'object',
    required: ['id'],
    properties: {
      id: { description: 'The id of the envelope that subscribed.' },
    },
  },
  run:
    () =>
    ({ id }) => ({ kind: 'data', data: {}, unsubscribed: id }),
});

/** How long a session lasts after its sign-in. */
export const sessionMs = 12 * 3_600_000;

/** Open sessions of one key: another one ends the oldest. */
export const sessionsPerKeyMax = 20;

/** The parts that the operations on sessions need; `now` is in milliseconds since 1970. */
interface SessionParts {
  readonly sessions: SessionStore;
  readonly authenticate: Authenticate;
  readonly keyRates: Pick<KeyRates, 'countSignIn'>;
  readonly newId: () => string;
  readonly randomBytes: (count: number) => Buffer;
  readonly now: () => number;
  readonly view: Pick<ViewConfig, 'base'>;
  /** The sign-in by `[login]`. */
  readonly login: Login | undefined;
}

const time = { type: 'string', format: 'date-time' } as const;
const text = { type: 'string' } as const;

const sessionProperties = {
  id: { ...text, description: 'Id of the session.' },
  key: { ...text, description: 'Id of the key that it was made with.' },
  name: { ...text, description: 'Name of that key.' },
  created: time,
  expires: time,
} as const;

/** JSON Schema of the answer with a new session. */
export const newSessionSchema = {
  title: 'NewSession',
  type: 'object',
  required: ['id', 'key', 'name', 'created', 'expires', 'scopes', 'token'],
  properties: {
    ...sessionProperties,
    ...boundsMembers,
    scopes: scopesSchema,
    token: { ...text, description: 'Send it as apikey. Only this answer shows it.' },
  },
} as const;

/**
 * session.insert: makes a session from an API key. Its token works in place of the key, only
 * together with the cookie that the answer sets. Refuses with `unauthenticated` or `rate_limited`,
 * and with `invalid` over the websocket, which cannot set a cookie.
 */
export const insertSession = defineOperation({
  name: 'svc1.session.insert',
  scope: undefined,
  effect: 'writes',
  summary: 'Signs in: makes a session of 12 hours from an API key; the answer sets its cookie.',
  output: newSessionSchema,
  input: { type: 'object', required: ['apikey'], properties: { apikey: { type: 'string' } } },
  run:
    (parts: SessionParts) =>
    async ({ apikey }, call) => {
      if (call.transport === 'websocket') throw overHttp();
      const { sessions, authenticate, randomBytes } = parts;
      const { address } = call.caller;
      const signing = authenticate({ apikey, address });
      const { keyId, sessionId, scopes: held, bounds } = signing;
      const key = keyId === undefined ? undefined : sessions.key(keyId);
      if (key === undefined || sessionId !== undefined) throw noKey();
      parts.keyRates.countSignIn(signing);
      const made = newSession(parts, key, {
        sealed: (stored) =>
          sessions.passesOn ? sealKey(apikey, stored, randomBytes(12)) : undefined,
      });
      await sessions.commit(key.id, (reads) => ({
        drafts: made.drafts(reads.keys()),
        answer: () => undefined,
      }));
      return made.result({ scopes: held, bounds }, call);
    },
});

/** A new session of a key: the rows that begin it, and the answer of the operation. */
export function newSession(
  { newId, randomBytes, now, view }: Pick<SessionParts, 'newId' | 'randomBytes' | 'now' | 'view'>,
  key: Pick<ApiKey, 'id' | 'name' | 'until'>,
  {
    login,
    sealed = () => undefined,
  }: {
    /** The session of the visitor with which it ends. */
    readonly login?: Pick<LoginSession, 'id' | 'expires'>;
    /** The text of the key, encrypted with the secrets of the session. */
    readonly sealed?: (secrets: string) => string | undefined;
  },
): {
  readonly drafts: (keys: readonly ApiKey[]) => readonly LoggedDraft[];
  readonly result: (
    held: { readonly scopes: Iterable<Scope>; readonly bounds?: Bounds | undefined },
    call: Call,
  ) => OperationResult<StaticOutput<typeof newSessionSchema>>;
} {
  const { token, cookieName, cookie, text: stored } = newSessionSecrets(randomBytes);
  const id = newId();
  const nowMs = now();
  const endMs = Math.min(
    nowMs + sessionMs,
    keyEndMs(key),
    login === undefined ? Infinity : Date.parse(login.expires),
  );
  const [created, expires] = [new Date(nowMs).toISOString(), new Date(endMs).toISOString()];
  const keyText = sealed(stored);
  const session = {
    ...{ key: key.id, expires },
    ...(keyText !== undefined && { sealed: keyText }),
    ...(login !== undefined && { login: login.id }),
  };
  const data = { name: key.name, scopes: [], created, hash: keyHash(stored), session };
  return {
    drafts: (keys) => [
      ...endDrafts(keys, key.id, nowMs),
      { family: 'key', id, action: 'insert', data },
    ],
    result: ({ scopes, bounds }, call) => ({
      kind: 'data',
      data: {
        ...{ id, key: key.id, name: key.name, created, expires, scopes: [...scopes], token },
        ...bounds,
      },
      fields: setCookie(`${cookieName}=${cookie}`, { base: view.base, call, ms: endMs - nowMs }),
    }),
  };
}

/** The drafts that end expired sessions, and the oldest of a key that has too many. */
function endDrafts(keys: readonly ApiKey[], keyId: string, nowMs: number): readonly LoggedDraft[] {
  const sessions = keys.filter(({ session }) => session !== undefined);
  const expired = sessions.filter((one) => isExpired(one, nowMs));
  const open = sessions.filter((one) => one.session?.key === keyId && !isExpired(one, nowMs));
  const oldest = open
    .toSorted((a, b) => (a.created < b.created ? -1 : 1))
    .slice(0, Math.max(0, open.length + 1 - sessionsPerKeyMax));
  return [...expired, ...oldest].map(({ id }) => endDraft(id));
}

function endDraft(id: string): LoggedDraft {
  return { family: 'key', id, action: 'invalidate', data: {} };
}

/** The field that sets a cookie that only this service gets, and no script reads. */
function setCookie(
  pair: string,
  { base, call, ms }: { readonly base: string; readonly call: Call; readonly ms: number },
): FieldList {
  const secure = call.origin.startsWith('https:') ? '; Secure' : '';
  const lifetime = `Max-Age=${Math.floor(ms / 1000)}`;
  return [
    'Set-Cookie',
    `${pair}; Path=${base}/svc1; ${lifetime}; HttpOnly; SameSite=Strict${secure}`,
  ];
}

/** session.read: the scopes of the caller, with its key and session if it has them. */
export const readSession = defineOperation({
  name: 'svc1.session.read',
  scope: undefined,
  effect: 'reads',
  summary: 'Who the caller is: its scopes, its key and its session.',
  output: {
    title: 'CurrentSession',
    type: 'object',
    required: ['scopes'],
    properties: {
      ...sessionProperties,
      ...boundsMembers,
      until: { ...time, description: 'When the key ends; without, never.' },
      scopes: scopesSchema,
      sign_in: { ...text, description: 'The path where people sign in to the console by [login].' },
    },
  },
  input: { type: 'object' },
  run:
    ({ sessions, login }: Pick<SessionParts, 'sessions' | 'login'>) =>
    (_v, { caller }) => {
      const key = caller.keyId === undefined ? undefined : sessions.key(caller.keyId);
      const session = caller.sessionId === undefined ? undefined : sessions.key(caller.sessionId);
      const data = {
        ...(session !== undefined && sessionTimes(session)),
        ...(key !== undefined && { key: key.id, name: key.name, until: key.until }),
        scopes: [...caller.scopes],
        // A follower passes writes on with the text of a key, which such people do not have.
        ...(login?.hasConsole === true && !sessions.passesOn && { sign_in: login.path }),
        ...caller.bounds,
      };
      return { kind: 'data', data };
    },
});

function sessionTimes({ id, created, session }: ApiKey): JsonObject {
  return { id, created, ...(session !== undefined && { expires: session.expires }) };
}

/** session.list: all open sessions. */
export const listSessions = defineOperation({
  name: 'svc1.session.list',
  scope: 'admin',
  effect: 'reads',
  summary: 'Every open session, with the key that it was made with.',
  output: {
    title: 'SessionList',
    type: 'object',
    required: ['rows'],
    properties: {
      rows: { type: 'array', items: { type: 'object', properties: sessionProperties } },
    },
  },
  input: { type: 'object' },
  run:
    ({ sessions, now }: Pick<SessionParts, 'sessions' | 'now'>) =>
    () => {
      const rows = sessions.keys().flatMap((one) => {
        const key = one.session && sessions.key(one.session.key);
        if (key === undefined || keyEndMs(key) <= now() || isExpired(one, now())) return [];
        return [{ ...sessionTimes(one), key: key.id, name: key.name }];
      });
      return { kind: 'data', data: { rows } };
    },
});

/**
 * session.end: signs out: ends the session of the caller, or with the scope admin another one.
 * Refuses with `not_found`, or `forbidden` for the session of another caller.
 */
export const endSession = defineOperation({
  name: 'svc1.session.end',
  scope: undefined,
  effect: 'writes',
  summary: 'Signs out: ends the session of the caller, or, with the scope admin, the one of an id.',
  failures: ['not_found', 'forbidden'],
  output: {
    title: 'EndedSession',
    type: 'object',
    required: ['id', 'ended'],
    properties: { id: { type: 'string' }, ended: { const: true } },
  },
  input: { type: 'object', properties: { id: { type: 'string', nullable: true } } },
  run:
    ({ sessions, view }: Pick<SessionParts, 'sessions' | 'view'>) =>
    async ({ id: given }, call) => {
      const { caller } = call;
      const id = given ?? caller.sessionId;
      if (id === undefined) {
        throw new Failure('not_found', 'This request has no session. Name one by its id.');
      }
      if (id !== caller.sessionId && !hasScope(caller, 'admin')) {
        throw new Failure('forbidden', 'Only a key with the scope admin ends another session.');
      }
      await sessions.commit(caller.keyId ?? 'anonymous', (reads) => {
        if (reads.key(id)?.session === undefined) {
          throw new Failure('not_found', 'There is no open session with this id.', {
            field: 'id',
          });
        }
        return { drafts: [endDraft(id)], answer: () => undefined };
      });
      const name = sessionCookieName(call.fields.apikey ?? '');
      const isOwn = id === caller.sessionId && name !== undefined;
      return {
        kind: 'data',
        data: { id, ended: true as const },
        ...(isOwn && { fields: setCookie(`${name}=`, { base: view.base, call, ms: 0 }) }),
      };
    },
});

/** The refusal of a new session over the websocket. */
export function overHttp(): Failure {
  return new Failure(
    'invalid',
    'A websocket cannot set a cookie: call this over HTTP, then session.authenticate.',
  );
}

function noKey(): Failure {
  return new Failure('unauthenticated', 'Sign in with an API key, not with a session.', {
    field: 'apikey',
  });
}
