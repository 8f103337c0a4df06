import { call, signIn } from './api.ts';
import { currentSession, type Session } from './session.ts';
import { texts } from '../texts.ts';

const t = texts.partner;
const scopePrefix = 'verify:';
/** The scopes that every visitor may have, too. */
const visitorScopes: readonly string[] = ['render'];

/** Makes a key that reads the deliveries of one hook, and the link that signs in with it. */
export async function partnerLink(hook: string, name: string): Promise<string> {
  const made = await call<{ key: string }>('key.insert', {
    ...{ name: `${t.keyName} ${name}`.slice(0, 128), scopes: [scopePrefix + hook] },
  });
  const url = new URL(document.baseURI);
  url.hash = `/partner/${hook}?key=${made.key}`;
  return url.href;
}

/** The hook of a session that reads the deliveries of one hook only; undefined for another one. */
export function partnerHook(session: Session | undefined = currentSession()): string | undefined {
  const scopes = session?.scopes ?? [];
  const [scope = '', ...others] = scopes.filter((one) => !visitorScopes.includes(one));
  const isPartner = others.length === 0 && scope.startsWith(scopePrefix);
  return isPartner ? scope.slice(scopePrefix.length) : undefined;
}

/**
 * Signs in with the key of a partner's link, and removes it from the URL first. A link may only
 * have a key of that kind: one with other scopes would sign a person in as somebody else unnoticed
 * (docs/design/console.md#partners). Resolves to why it did not sign in; empty if it did, or if the
 * URL has no key.
 */
export async function signInByLink(): Promise<string> {
  const [path = '', query = ''] = location.hash.slice(1).split('?', 2);
  const key = new URLSearchParams(query).get('key');
  const [, screen, hook] = path.split('/');
  if (screen !== 'partner' || key === null) return '';
  history.replaceState(null, '', `#${path}`);
  if (currentSession() !== undefined) return t.alreadySignedIn;
  try {
    await signIn(key, (session) => partnerHook(session) === hook);
    return '';
  } catch (error) {
    return error instanceof Error ? error.message : texts.states.failed;
  }
}
