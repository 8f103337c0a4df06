import { draftFor } from './draft.ts';
import { currentDraft, currentSession, keepSession, type Session } from './session.ts';
import { texts } from '../texts.ts';
import { parseJson } from './json.ts';

export type { Json, JsonObject } from './json.ts';

/** What is wrong with a field, as the server says it. */
export interface Problem {
  readonly field: string;
  readonly reason: string;
  readonly message: string;
  readonly suggestion?: string;
}

/** A failure of an operation, as the server says it. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly field: string | undefined;
  readonly problems: readonly Problem[];

  constructor(
    status: number,
    error: { code: string; message: string; field?: string; problems?: readonly Problem[] },
  ) {
    super(error.message);
    this.status = status;
    this.code = error.code;
    this.field = error.field;
    this.problems = error.problems ?? [];
  }
}

/** The address of the service: the folder above the console's. */
export const service = new URL('../', document.baseURI.replace(/[?#].*$/s, ''));

/** Whether this origin has the console alone, and nothing of the site. */
export const isAlone = document.documentElement.dataset.alone !== undefined;

/** The address of the documentation of the version that runs. */
export const docs = new URL('docs/', service).href;

/** The address of an operation: `userinterface.list` has `…/userinterface/list`. */
export function operationUrl(name: string): string {
  return new URL(name.replace('.', '/'), service).href;
}

/** The members of an envelope besides its input. */
export interface EnvelopeOptions {
  readonly qk?: string;
  readonly vk?: string;
  readonly prefer?: string;
  readonly signal?: AbortSignal;
  /** The id of a draft, in place of the one that the tab works in. */
  readonly draft?: string;
  /** Whether it is about the live site, also while the tab works in a draft. */
  readonly isLive?: boolean;
}

const listeners = new Set<() => void>();

/** Calls a function whenever the session ends or begins. */
export function onSession(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function sessionChanged(session: Session | undefined): void {
  keepSession(session);
  for (const listener of listeners) listener();
}

type PostOptions = EnvelopeOptions & { readonly isVisitor?: boolean };

async function post(
  name: string,
  v: object,
  { signal, isLive, isVisitor = false, ...envelope }: PostOptions,
  token: string | undefined,
): Promise<unknown> {
  const draft = isVisitor ? {} : draftFor(name, v, isLive);
  const response = await fetch(operationUrl(name), {
    method: 'POST',
    credentials: isVisitor ? 'omit' : 'same-origin',
    headers: { 'content-type': 'application/json', ...(token !== undefined && { apikey: token }) },
    body: JSON.stringify({ v, ...draft, ...envelope }),
    redirect: 'error',
    ...(signal && { signal }),
  });
  const answer = (await response
    .text()
    .then((text) => parseJson(text))
    .catch(() => ({}))) as {
    data?: unknown;
    error?: ConstructorParameters<typeof ApiError>[1];
  };
  if (response.ok) return answer.data;
  throw new ApiError(
    response.status,
    answer.error ?? { code: 'internal', message: `The server answered ${response.status}.` },
  );
}

/** Calls an operation as the session; rejects with ApiError. A session that has ended is forgotten. */
export async function call<T>(
  name: string,
  v: object = {},
  options: EnvelopeOptions = {},
): Promise<T> {
  const session = currentSession();
  try {
    return (await post(name, v, options, session?.token)) as T;
  } catch (error) {
    const hasEnded = error instanceof ApiError && error.status === 401;
    if (hasEnded && session !== undefined) endSession(session);
    throw error;
  }
}

/** Calls an operation as a visitor without a session, for what the author of a page may choose. */
export async function callAsVisitor<T>(
  name: string,
  v: object,
  options: EnvelopeOptions = {},
): Promise<T> {
  return (await post(name, v, { ...options, isVisitor: true }, undefined)) as T;
}

/**
 * A page of the site as its visitors get it, for the place and moment of get_content; with
 * `isVisitor`, without the session.
 */
export function fetchPage(
  v: object,
  { signal, isLive, isVisitor = false }: Pick<PostOptions, 'signal' | 'isLive' | 'isVisitor'> = {},
): Promise<Response> {
  const draft = isVisitor ? {} : draftFor('userinterface.get_content', v, isLive);
  return fetch(operationUrl('userinterface.get_content'), {
    method: 'POST',
    credentials: isVisitor ? 'omit' : 'same-origin',
    headers: { 'content-type': 'application/json', ...(!isVisitor && { apikey: currentToken() }) },
    body: JSON.stringify({ v, ...draft }),
    redirect: 'manual',
    signal: signal ?? null,
  });
}

/**
 * Signs in with an API key, which is not kept. A session that is not allowed is ended at once, and
 * the promise rejects.
 */
export async function signIn(
  apikey: string,
  isAllowed: (session: Session) => boolean = () => true,
): Promise<void> {
  const session = (await post('session.insert', { apikey }, {}, undefined)) as Session;
  if (!isAllowed(session)) {
    await post('session.end', {}, {}, session.token).catch(() => undefined);
    throw new Error(texts.partner.otherKey);
  }
  sessionChanged(session);
}

const stateKey = 'waymark console sign-in';
const loginPath = '/sign-in';

/** The path where people sign in by `[login]`; undefined if the server offers none. */
export async function loginOffered(): Promise<string | undefined> {
  const { sign_in: path } = (await post('session.read', {}, {}, undefined)) as { sign_in?: string };
  return path;
}

/**
 * Leaves for the sign-in by `[login]`. The tab keeps a random text, which the server ties to the
 * sign-in: a link with the sign-in of somebody else signs nobody in (login CSRF).
 */
export function leaveForLogin(path: string): void {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  // In base64url, 32 bytes have 43 characters and one of padding.
  const text = btoa(String.fromCharCode(...bytes)).slice(0, 43);
  const state = text.replaceAll('+', '-').replaceAll('/', '_');
  sessionStorage.setItem(stateKey, state);
  location.assign(`${path}?console=${state}`);
}

/**
 * Signs in with what the sign-in by `[login]` has added to the URL, and removes that first. Resolves
 * to why it did not sign in; empty if it did, or if the URL has nothing of the kind.
 */
export async function signInByLogin(): Promise<string> {
  const [path = '', query = ''] = location.hash.slice(1).split('?', 2);
  const grant = new URLSearchParams(query).get('grant');
  if (path !== loginPath || grant === null) return '';
  const state = sessionStorage.getItem(stateKey) ?? '';
  sessionStorage.removeItem(stateKey);
  history.replaceState(null, '', '#/');
  try {
    sessionChanged((await post('login.console', { grant, state }, {}, undefined)) as Session);
    return '';
  } catch (error) {
    return error instanceof Error ? error.message : texts.states.failed;
  }
}

/** Forgets a session that the server no longer accepts. */
export function endSession(session: Session): void {
  if (session === currentSession()) sessionChanged(undefined);
}

/** Ends the session; this tab forgets it also if the server cannot be reached. */
export async function signOut(): Promise<void> {
  const session = currentSession();
  if (session !== undefined)
    await post('session.end', {}, {}, session.token).catch(() => undefined);
  sessionChanged(undefined);
}

/** Whether the session has a scope, also by another: `design` includes `draft` and `publish`. */
export function may(scope: string): boolean {
  const scopes = currentSession()?.scopes ?? [];
  const isOfDesign = scope === 'draft' || scope === 'publish';
  return [scope, 'admin', ...(isOfDesign ? ['design'] : [])].some((one) => scopes.includes(one));
}

/** Whether the session may change page rules where the tab works: live, or in its draft. */
export function mayDesign(): boolean {
  return may(currentDraft() === undefined ? 'design' : 'draft');
}

/** Whether the key of the session is bound to a part of the site. */
export function isBound(): boolean {
  const { origins, paths } = currentSession() ?? {};
  return origins !== undefined || paths !== undefined;
}

/** The origin that screens show at first: the first of those that the key is bound to. */
export function firstOrigin(): string {
  return currentSession()?.origins?.[0] ?? '*';
}

/** The command that calls an operation with curl; the key is a variable of the shell. */
export function curlOf(name: string, v: object, options: EnvelopeOptions = {}): string {
  const { signal: _signal, isLive, ...envelope } = options;
  const draft = draftFor(name, v, isLive);
  const body = JSON.stringify({ v, ...envelope, ...draft }, undefined, 2).replaceAll("'", `'\\''`);
  return `curl -H "apikey: $KEY" ${operationUrl(name)} -d '${body}'`;
}

/** The token of the session; empty without one. */
export function currentToken(): string {
  return currentSession()?.token ?? '';
}
