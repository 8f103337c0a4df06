import type { LoggedDraft, Store } from '../../../core/log/store.ts';
import { keyHash } from '../../../core/operations/keys/authenticate.ts';
import { defineOperation } from '../../../core/operations/operation.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { ApiKey, Scope } from '../../../core/values/key.ts';
import { keyNameCharactersMax } from '../../../core/values/limits.ts';
import type { Login } from '../../login/login.ts';
import { ownLoginName } from '../../login/section.ts';
import { type LoginSession, loginSessionsPart } from '../../login/stored-sessions.ts';
import type { ViewConfig } from '../../rules/operations/rule-view.ts';
import type { SessionStore } from './session-store.ts';
import { newSession, newSessionSchema, overHttp } from './sessions.ts';

/** Sessions of visitors in one answer of login.list. */
const loginsListedMax = 1_000;

/** The parts that the operations on the sessions of visitors need. */
interface LoginParts {
  readonly login: Login | undefined;
  readonly store: Pick<Store, 'part'>;
  readonly sessions: SessionStore;
  readonly newId: () => string;
  readonly randomBytes: (count: number) => Buffer;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly view: Pick<ViewConfig, 'base'>;
}

const text = { type: 'string' } as const;
const time = { type: 'string', format: 'date-time' } as const;

/** login.list: the open sessions of visitors, in the order of their beginning. */
export const listLogins = defineOperation({
  name: 'svc1.login.list',
  scope: 'admin',
  effect: 'reads',
  summary: 'The open sessions of visitors who have signed in by [login] at this node.',
  output: {
    title: 'LoginList',
    type: 'object',
    required: ['rows', 'next'],
    properties: {
      rows: {
        type: 'array',
        items: {
          title: 'Login',
          type: 'object',
          required: ['id', 'user', 'roles', 'provider', 'created', 'expires'],
          properties: {
            id: text,
            user: text,
            roles: { type: 'array', items: text },
            provider: { ...text, description: 'The name of its [login.<name>], or login.' },
            created: time,
            expires: time,
          },
        },
      },
      next: { type: ['string', 'null'], description: 'The `after` of the next rows, if any.' },
    },
  },
  input: {
    type: 'object',
    properties: {
      after: { ...text, nullable: true, description: 'The id of the last session seen.' },
      user: { ...text, nullable: true, description: 'Only the sessions of this user.' },
    },
  },
  run:
    ({ store, now }: Pick<LoginParts, 'store' | 'now'>) =>
    ({ after, user }) => {
      const found = store.part(loginSessionsPart).list(after ?? '', loginsListedMax);
      const rows = found
        .filter((one) => Date.parse(one.expires) > now() && (user ?? one.user) === one.user)
        .map(({ id, user: name, roles, provider = ownLoginName, created, expires }) => {
          return { id, user: name, roles: [...roles], provider, created, expires };
        });
      const next = found.length < loginsListedMax ? null : (found.at(-1)?.id ?? null);
      return { kind: 'data', data: { rows, next } };
    },
});

/** login.end: ends the session of a visitor, and what was opened with it. */
export const endLogin = defineOperation({
  name: 'svc1.login.end',
  scope: 'admin',
  effect: 'writes',
  summary: 'Ends the session of a visitor at once, also in the console.',
  failures: ['not_found'],
  output: {
    title: 'EndedLogin',
    type: 'object',
    required: ['id', 'ended'],
    properties: { id: text, ended: { const: true } },
  },
  input: { type: 'object', required: ['id'], properties: { id: text } },
  run:
    ({ store }: Pick<LoginParts, 'store'>) =>
    async ({ id }) => {
      const [ended] = await store.part(loginSessionsPart).end([id]);
      if (ended !== undefined) return { kind: 'data', data: { id, ended: true as const } };
      throw new Failure('not_found', 'There is no open session with this id.', { field: 'id' });
    },
});

/**
 * login.console: makes a session of the console for a person who has signed in by `[login]` with
 * one of its `console_roles`. Refuses with `unauthenticated`, `forbidden`, and with `invalid` over
 * the websocket, which cannot set a cookie.
 */
export const openConsole = defineOperation({
  name: 'svc1.login.console',
  scope: undefined,
  effect: 'writes',
  summary: 'Makes a session of the console for a person who has just signed in by [login].',
  failures: ['forbidden'],
  output: newSessionSchema,
  input: {
    type: 'object',
    required: ['grant', 'state'],
    properties: {
      grant: { ...text, description: 'What the sign-in has added to the address of the console.' },
      state: { ...text, description: 'What the console has sent to the sign-in.' },
    },
  },
  run:
    (parts: LoginParts) =>
    async ({ grant, state }, call) => {
      const { login, sessions } = parts;
      if (call.transport === 'websocket') throw overHttp();
      if (login === undefined) throw new Failure('forbidden', 'There is no [login] here.');
      if (sessions.passesOn) {
        const message = 'This node follows a centre: sign in there, or with an API key here.';
        throw new Failure('forbidden', message);
      }
      const { cookie } = call.fields;
      const { origin } = call;
      const granted = login.consoleGrant({ grant, state }, { cookie, origin });
      const made = await sessions.commit('login', (reads) => {
        const keys = reads.keys();
        const { key, drafts } = keyOf(granted, keys, parts);
        const session = newSession(parts, key, { login: granted.session });
        return { drafts: [...drafts, ...session.drafts(keys)], answer: () => session };
      });
      return made.result(granted, call);
    },
});

/**
 * The key of a person, under which the log has the person's changes, and the rows that make it if
 * it is missing or has other scopes. Nobody knows its text.
 */
function keyOf(
  { session, scopes }: { readonly session: LoginSession; readonly scopes: readonly Scope[] },
  keys: readonly ApiKey[],
  { newId, randomBytes, now }: Pick<LoginParts, 'newId' | 'randomBytes' | 'now'>,
): { readonly key: Pick<ApiKey, 'id' | 'name'>; readonly drafts: readonly LoggedDraft[] } {
  const [person] = session.found;
  const known = keys.filter(({ login }) => login === person);
  const name = nameOf(session.user);
  const isSame = (key: ApiKey): boolean =>
    key.name === name && key.scopes.join(' ') === scopes.join(' ');
  const same = known.find(isSame);
  if (same !== undefined) return { key: same, drafts: [] };
  const id = newId();
  const hash = keyHash(randomBytes(32).toString('base64url'));
  const created = new Date(now()).toISOString();
  const data = { name, scopes: [...scopes], created, hash, login: person };
  return {
    key: { id, name },
    drafts: [
      ...known.map((one): LoggedDraft => {
        return { family: 'key', id: one.id, action: 'invalidate', data: {} };
      }),
      { family: 'key', id, action: 'insert', data },
    ],
  };
}

/** The name of a person's key: one line. */
function nameOf(user: string): string {
  const line = user.replaceAll(/\p{Cc}/gu, ' ');
  const end = ' (login)';
  return (
    line
      .slice(0, keyNameCharactersMax - end.length)
      .toWellFormed()
      .trim() + end
  );
}
