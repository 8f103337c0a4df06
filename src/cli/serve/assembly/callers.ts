import {
  createAuthenticate,
  type Authenticate,
} from '../../../core/operations/keys/authenticate.ts';
import {
  followerSessions,
  loggedSessions,
  type SessionStore,
} from '../../../modules/console/sessions/session-store.ts';
import { loginProviders, type Config } from '../../../core/config/config.ts';
import { createLogin, type Login } from '../../../modules/login/login.ts';
import { newId, now } from '../../../core/values/clock.ts';
import type { SourceDiallers } from '../../../modules/proxy/source-diallers.ts';
import type { Store } from '../../../core/log/store.ts';
import { createVisitors, type Visitors } from '../../../modules/visitors/visitor.ts';
import type { AppContext, CallerContext } from './context.ts';

/** Identifies callers by their keys and sessions. */
export function composeAuthenticate(
  { auth }: Config,
  { wrongKeys, keyUses }: CallerContext,
  keys: SessionStore,
): Authenticate {
  const { anonymous, keyRate } = auth;
  const used = (id: string): void => {
    keyUses.note(id);
  };
  return createAuthenticate({ keys, anonymous, keyRate, wrongKeys, used, now });
}

/** The sessions of the console; those of people who have signed in by `[login]` end with it. */
export function composeSessions(config: Config, store: Store): SessionStore {
  const { node } = config;
  const sessions = node.central === undefined ? loggedSessions(store) : followerSessions(store);
  return loginProviders(config).length === 0 ? { ...sessions, isLoginOpen: () => false } : sessions;
}

/** Who visitors are, and their sign-in by a provider, if there is one. */
export function composeVisitors(
  config: Config,
  context: Pick<AppContext, 'store' | 'logs'>,
  diallers: SourceDiallers,
): { readonly login: Login | undefined; readonly visitors: Visitors } {
  const { log } = context.logs;
  const login = composeLogin(config, context, diallers);
  const loginUser =
    login &&
    ((cookie: string | undefined, origin: string) =>
      login.userOf(cookie, origin.startsWith('https:')));
  return { login, visitors: createVisitors({ config, loginUser, now, log }) };
}

/** The sign-in of visitors by a provider, which may be in a private network. */
function composeLogin(
  config: Config,
  { store, logs: { log } }: Pick<AppContext, 'store' | 'logs'>,
  diallers: SourceDiallers,
): Login | undefined {
  const providers = loginProviders(config);
  if (providers.length === 0) return undefined;
  return createLogin({
    ...{ providers, base: config.server.base, store: store.loginSessions },
    dialler: () => diallers.of({ ini: { connectTimeoutMs: undefined } }),
    ...{ newId, now, log },
  });
}
