import { createRequire } from 'node:module';

// As in core/values/lazy-packages.ts.
const require = createRequire(import.meta.url);

/** openid-client, with which visitors sign in. */
export function loadOpenIdClient(): typeof import('openid-client') {
  return require('openid-client') as typeof import('openid-client');
}
