import type { LoginConfig } from '../../core/config/config.ts';
import { takeParameter } from '../../core/http/query.ts';
import { type FieldList, type Reply, noBody } from '../../core/http/reply.ts';
import { type Fields, type RequestTarget, isRead } from '../../core/http/request.ts';
import type { User } from '../../core/http/visitor.ts';
import type { Dialler } from '../../core/outbound/dialler.ts';
import type { Log } from '../../core/report/log.ts';
import { Failure } from '../../core/values/failure.ts';
import type { Scope } from '../../core/values/key.ts';
import { encodePath } from '../../core/values/path.ts';
import { KIB } from '../../core/values/units.ts';
import { choicePage } from './choice-page.ts';
import {
  type Sealing,
  cookieNames,
  cookieNamesWith,
  cookieValues,
  createSealing,
  setCookie,
  wayBackFrom,
} from './cookies.ts';
import { type VerifyLogoutToken, createLogoutTokens } from './logout-token.ts';
import { type Provider, createProvider, usedUp } from './provider.ts';
import { ownLoginName } from './section.ts';
import { type SessionRegister, createSessionRegister, providerOf } from './sessions.ts';
import type { LoginSession, LoginSessions } from './stored-sessions.ts';

/** How long a person may take to sign in at the provider. */
const signInMs = 600_000;

/** Started sign-ins of a browser at the same time: their cookies fit into a request. */
const startedSignInsMax = 4;

/** How often a browser may come back from the provider within a minute: more is a loop. */
const signInsPerMinuteMax = 5;

/** The content of a request by which the provider ends sessions. */
const logoutBytesMax = 16 * KIB;

/** How long the console may take to use a sign-in. */
const consoleGrantMs = 60_000;

/** A request for a path of the sign-in. */
interface LoginRequest {
  /** The part of the path after `/svc1/login/`. */
  readonly path: string;
  readonly method: string;
  readonly target: RequestTarget;
  readonly fields: Fields;
  readonly address: string;
  /** Aborts when the client has gone. */
  readonly signal: () => AbortSignal;
  /** Reads its content, up to some bytes; rejects with `too_large`. */
  readonly body: (bytesMax: number) => Promise<Buffer>;
}

/** A sign-in that the console may use once the browser is back. */
interface ConsoleGrant {
  readonly session: LoginSession;
  readonly scopes: readonly Scope[];
}

/** The sign-in by `[login]` and `[login.<name>]` (docs/design/sign-in.md). */
export interface Login {
  /** The path to which browsers are sent to sign in. */
  readonly path: string;
  /** Whether people with a role may sign in to the console. */
  readonly hasConsole: boolean;
  /** Answers a request; undefined if its path does not belong to the sign-in. */
  respond(request: LoginRequest): Reply | Promise<Reply> | undefined;
  /** The user of the cookies of a request, which came over TLS or not. */
  userOf(cookie: string | undefined, isSecure: boolean): User | undefined;
  /**
   * What a grant for the console permits, for the request of the browser that has signed in and of
   * the tab that knows the state. Throws `unauthenticated` or `forbidden`.
   */
  consoleGrant(
    given: { readonly grant: string; readonly state: string },
    request: { readonly cookie: string | undefined; readonly origin: string },
  ): ConsoleGrant;
}

interface LoginParts {
  /** In the order in which visitors see them; at least one. */
  readonly providers: readonly LoginConfig[];
  /** `[server] base`. */
  readonly base: string;
  readonly store: LoginSessions;
  /** The dialler for the providers. */
  readonly dialler: () => Dialler;
  readonly newId: () => string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
}

/** A sign-in that a browser has begun, as its sealed cookie has it. */
interface StartedSignIn {
  /** The name of the provider. */
  readonly provider: string;
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly origin: string;
  readonly returnTo: string;
  /** The state of the console that has begun it. */
  readonly console: string | undefined;
  readonly untilMs: number;
}

/** A grant for the console, as it is sealed. */
interface SealedGrant {
  readonly session: string;
  readonly state: string;
  readonly untilMs: number;
}

const [startedPurpose, grantPurpose] = ['started sign-in', 'console grant'];
const source = 'svc1';

/** Creates the sign-in of a configuration. */
export function createLogin(parts: LoginParts): Login {
  const { providers, base, store, dialler, newId, now, log } = parts;
  const sessions = createSessionRegister(store, { providers, newId, now });
  const choices = providers.map((login): SignInProvider => {
    const provider = createProvider({ login, dialler, now, log });
    const verifyLogoutToken = createLogoutTokens(login, { provider, dialler, now });
    return { login, provider, verifyLogoutToken };
  });
  const whole: SignInParts = {
    ...{ choices, sessions, now },
    folder: `${base}/svc1/login/`,
    consolePage: `${base}/svc1/console/`,
    sealing: createSealing(store, now),
  };
  return {
    path: `${whole.folder}sign-in`,
    hasConsole: providers.some(isForConsole),
    respond(request) {
      const [path = '', name = ownLoginName, ...further] = request.path.split('/');
      if (path === 'sign-in' && request.path === path) {
        return asBrowser(request, () => signIn(request, whole));
      }
      if (path === 'sign-out' && request.path === path) return end(request, whole);
      const choice = choices.find(({ login }) => login.name === name);
      const isItsPath = choice !== undefined && request.path === providerPath(path, choice.login);
      if (!isItsPath || further.length > 0) return undefined;
      if (path === 'callback') return asBrowser(request, () => complete(request, choice, whole));
      if (path === 'back-channel-logout') return endForProvider(request, choice, whole);
      return undefined;
    },
    userOf(cookie, isSecure) {
      const session = sessions.find(cookie, isSecure ? 'https:' : 'http:');
      if (session === undefined) return undefined;
      return { name: session.user, roles: session.roles, provider: providerOf(session) };
    },
    consoleGrant: (given, request) => grantFor(given, request, whole),
  };
}

/** A provider with what speaks with it. */
interface SignInProvider {
  readonly login: LoginConfig;
  readonly provider: Provider;
  readonly verifyLogoutToken: VerifyLogoutToken;
}

interface SignInParts {
  readonly choices: readonly SignInProvider[];
  readonly sessions: SessionRegister;
  readonly sealing: Sealing;
  /** The path of the sign-in, with a final slash. */
  readonly folder: string;
  readonly consolePage: string;
  readonly now: () => number;
}

function isForConsole({ consoleRoles }: LoginConfig): boolean {
  return consoleRoles.length > 0;
}

/**
 * A path to which a provider sends: each has its own, so that the answer of one is never taken for
 * that of another (RFC 9700 §4.4.2.2).
 */
function providerPath(path: string, { name }: LoginConfig): string {
  return name === ownLoginName ? path : `${path}/${name}`;
}

/** Only a document that a person opens goes through a sign-in: no frame, image or script. */
function asBrowser({ method, fields }: LoginRequest, act: () => Promise<Reply>): Promise<Reply> {
  if (!isRead(method))
    throw new Failure('method_not_allowed', 'Use GET.', { allow: ['GET', 'HEAD'] });
  const { 'sec-fetch-dest': to = 'document', 'sec-purpose': purpose = '' } = fields;
  if (to === 'document' && !purpose.includes('prefetch')) return act();
  throw new Failure('forbidden', 'Open this address in a window of a browser.');
}

/** Sends the browser to the provider; of several, it first shows a page to choose. */
function signIn(request: LoginRequest, parts: SignInParts): Promise<Reply> {
  const { query } = request.target;
  const { choices } = parts;
  const asked = takeParameter(query, 'provider')?.value.split(',');
  const isConsole = choices.length > 1 && takeParameter(query, 'console') !== undefined;
  const open = choices.filter(
    ({ login }) => (asked?.includes(login.name) ?? true) && (!isConsole || isForConsole(login)),
  );
  const [first, second] = open;
  if (first === undefined) {
    return Promise.reject(new Failure('not_found', 'There is no such way to sign in here.'));
  }
  if (second === undefined) return begin(request, first, parts);
  const offered = open.map(({ login }) => login);
  return Promise.resolve(choicePage(offered, { query, method: request.method }));
}

/** Sends the browser to a provider. */
async function begin(
  { target, fields }: LoginRequest,
  { login, provider }: SignInProvider,
  parts: SignInParts,
): Promise<Reply> {
  const { sealing, folder, now } = parts;
  const { origin } = target;
  const names = cookieNames(origin);
  requireNoLoop(fields.cookie, names.count, provider);
  const console = takeParameter(target.query, 'console')?.value;
  if (console !== undefined && !/^[\w-]{43}$/.test(console)) {
    throw new Failure('invalid', 'Sign in from the page of the console.');
  }
  const { secrets, location } = await provider.authorize(
    `${origin}${encodePath(folder)}${providerPath('callback', login)}`,
  );
  const started: StartedSignIn = {
    ...{ ...secrets, provider: login.name, origin, console, untilMs: now() + signInMs },
    returnTo: wayBackFrom(takeParameter(target.query, 'return_to')?.value, origin, folder),
  };
  const value = await sealing.seal(startedPurpose, started);
  const others = cookieNamesWith(fields.cookie, names.startedPrefix);
  const forgotten = others.length < startedSignInsMax ? [] : others;
  const cookie = { name: names.started(secrets.state), value, seconds: signInMs / 1_000 };
  return redirect(location, [
    ...forgotten.map((name) => setCookie(origin, { name, value: '', seconds: 0 })),
    setCookie(origin, cookie),
  ]);
}

/** Begins the session of the person whom the provider names, and sends the browser back. */
async function complete(
  { target, fields, address, signal }: LoginRequest,
  { login, provider }: SignInProvider,
  parts: SignInParts,
): Promise<Reply> {
  const { sealing, sessions, folder, now } = parts;
  const { origin } = target;
  const names = cookieNames(origin);
  const state = takeParameter(target.query, 'state')?.value ?? '';
  const started = startedIn(fields.cookie, state, { origin, sealing, now });
  if (started?.provider !== login.name) throw usedUp();
  const callback = providerPath('callback', login);
  const returned = new URL(`${origin}${encodePath(folder)}${callback}?${target.query}`);
  const person = await provider.person(returned, started, { address, signal: signal() });
  const { session, cookie } = await sessions.begin(person, login);
  // A browser has one session: the one before would stay open without its cookie.
  const before = sessions.find(fields.cookie, origin);
  if (before !== undefined) await sessions.end([before.id]);
  const count = countIn(fields.cookie, names.count) + 1;
  const cookies = [
    setCookie(origin, { name: names.started(state), value: '', seconds: 0 }),
    setCookie(origin, { name: names.count, value: String(count), seconds: 60 }),
    setCookie(origin, {
      ...{ name: names.session, value: cookie },
      seconds: Math.floor(login.lifetimeMs / 1_000),
    }),
  ];
  if (started.console === undefined) return redirect(origin + started.returnTo, cookies);
  const granted: SealedGrant = {
    ...{ session: session.id, state: started.console },
    untilMs: now() + consoleGrantMs,
  };
  const grant = await sealing.seal(grantPurpose, granted);
  return redirect(`${origin}${encodePath(parts.consolePage)}#/sign-in?grant=${grant}`, cookies);
}

/** The sign-in that a browser has begun with a state. */
function startedIn(
  cookie: string | undefined,
  state: string,
  { origin, sealing, now }: { readonly origin: string } & Pick<SignInParts, 'sealing' | 'now'>,
): StartedSignIn | undefined {
  if (!/^[\w-]{43}$/.test(state)) return undefined;
  for (const value of cookieValues(cookie, cookieNames(origin).started(state))) {
    const started = sealing.open(startedPurpose, value) as StartedSignIn | undefined;
    const isThis = started?.state === state && started.origin === origin;
    if (isThis && now() < started.untilMs) return started;
  }
  return undefined;
}

/** Ends the session of the browser, here and at its provider. */
async function end(
  { method, target, fields }: LoginRequest,
  { choices, sessions }: SignInParts,
): Promise<Reply> {
  if (!isRead(method) && method !== 'POST') {
    throw new Failure('method_not_allowed', 'Use GET or POST.', { allow: ['GET', 'HEAD', 'POST'] });
  }
  const { origin } = target;
  if (method === 'HEAD' || !isMeant(fields, origin)) {
    throw new Failure('forbidden', 'Sign out on a page of this site.');
  }
  const session = sessions.find(fields.cookie, origin);
  const own = session && choices.find(({ login }) => login.name === providerOf(session));
  const { login, provider } = own ?? choices[0] ?? {};
  const returnTo = origin + encodePath(login?.signedOut ?? '/');
  let location: string | undefined;
  if (session !== undefined) {
    const idToken = sessions.idToken(session.id);
    await sessions.end([session.id]);
    // The session has ended here, whatever the provider says.
    location = await provider?.endSession({ idToken, returnTo }).catch(() => undefined);
  }
  const gone = setCookie(origin, { name: cookieNames(origin).session, value: '', seconds: 0 });
  return redirect(location ?? returnTo, [gone]);
}

/**
 * Whether a person or a page of the site has caused a request: no page of another site, and no
 * picture or frame, whose address visitors may write into a page.
 */
function isMeant(fields: Fields, own: string): boolean {
  const {
    'sec-fetch-site': site,
    'sec-fetch-dest': to = 'document',
    'sec-purpose': purpose = '',
    referer,
  } = fields;
  // Browsers without Fetch Metadata send no Origin with a GET either, but most of them a Referer.
  const from = site === undefined && referer !== undefined ? URL.parse(referer)?.origin : own;
  const isOwn = (fields.origin ?? own) === own && from === own;
  const isOwnSite = site === undefined || site === 'none' || site === 'same-origin';
  const isWanted = (to === 'document' || to === 'empty') && !purpose.includes('prefetch');
  return isOwn && isOwnSite && isWanted;
}

/** Ends the sessions that the provider names (OpenID Connect Back-Channel Logout 1.0 §2.5). */
async function endForProvider(
  { method, fields, body }: LoginRequest,
  { login, verifyLogoutToken }: SignInProvider,
  { sessions }: SignInParts,
): Promise<Reply> {
  if (method !== 'POST') throw new Failure('method_not_allowed', 'Use POST.', { allow: ['POST'] });
  const content = await body(logoutBytesMax);
  const type = fields['content-type']?.split(';')[0]?.trim().toLowerCase();
  const token = takeParameter(content.toString(), 'logout_token')?.value;
  if (type !== 'application/x-www-form-urlencoded' || token === undefined) {
    throw new Failure('invalid', 'Send a form with `logout_token`.');
  }
  const { subject, providerSession } = await verifyLogoutToken(token);
  const ofSession =
    providerSession === undefined ? [] : sessions.findBy('session', providerSession, login);
  // A provider that names sessions in logout tokens only means all of the subject.
  const ofSubject = subject === undefined ? [] : sessions.findBy('subject', subject, login);
  const open = ofSession.length > 0 ? ofSession : ofSubject;
  await sessions.end(open.map(({ id }) => id));
  return {
    status: 200,
    fields: ['Cache-Control', 'no-store', 'Content-Length', '0'],
    body: noBody,
    source,
  };
}

/** What a sealed grant permits, as Login.consoleGrant. */
function grantFor(
  { grant, state }: { readonly grant: string; readonly state: string },
  { cookie, origin }: { readonly cookie: string | undefined; readonly origin: string },
  { choices, sealing, sessions, now }: SignInParts,
): ConsoleGrant {
  const granted = sealing.open(grantPurpose, grant) as SealedGrant | undefined;
  // The grant is in a URL: it takes the tab that began the sign-in, and the browser that ended it.
  const isThis = granted?.state === state && now() < granted.untilMs;
  const session = isThis ? sessions.find(cookie, origin) : undefined;
  if (session === undefined || session.id !== granted?.session) {
    throw new Failure('unauthenticated', 'This sign-in has ended. Sign in again.');
  }
  const login = choices.find((one) => one.login.name === providerOf(session))?.login;
  const roles = login?.consoleRoles.map((role) => login.prefix + role) ?? [];
  if (login === undefined || !session.roles.some((role) => roles.includes(role))) {
    const message = `You have signed in as ${session.user}, who may not use the console.`;
    throw new Failure('forbidden', message);
  }
  return { session, scopes: login.consoleScopes };
}

/**
 * Throws `rate_limited` for a browser that comes back again and again within a minute: something
 * does not accept its session, and the provider would send it round in a circle.
 */
function requireNoLoop(
  cookie: string | undefined,
  name: string,
  provider: Pick<Provider, 'warn'>,
): void {
  if (countIn(cookie, name) < signInsPerMinuteMax) return;
  provider.warn({}, 'A browser signs in again and again: its session is not accepted.');
  throw new Failure('rate_limited', 'You have signed in several times within a minute.', {
    retryAfterSeconds: 60,
  });
}

function countIn(cookie: string | undefined, name: string): number {
  const [text = ''] = cookieValues(cookie, name);
  return /^\d{1,2}$/.test(text) ? Number(text) : 0;
}

/** A redirect that no cache stores, and whose address no other page learns. */
function redirect(location: string, cookies: readonly string[]): Reply {
  const set: FieldList = cookies.flatMap((cookie) => ['Set-Cookie', cookie]);
  return {
    status: 303,
    fields: [
      ...['Location', location, ...set, 'Cache-Control', 'no-store'],
      ...['Referrer-Policy', 'no-referrer', 'Content-Length', '0'],
    ],
    body: noBody,
    source,
  };
}
