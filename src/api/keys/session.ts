import { scopesSchema } from './keys.ts';
import { defineOperation } from '../operation.ts';
import type { Authenticate } from './authenticate.ts';

/**
 * session.authenticate: gives a websocket an API key, because browsers cannot set header fields on
 * an upgrade. Refuses with `unauthenticated` or `rate_limited`; the websocket then keeps the caller
 * that it had.
 */
export const authenticateSession = defineOperation<
  { readonly authenticate: Authenticate },
  { apikey: string }
>({
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
    ({ authenticate }) =>
    ({ apikey }, call) => {
      const { address } = call.caller;
      const caller = authenticate({ apikey, address, cookie: call.fields.cookie });
      return { kind: 'data', data: { scopes: [...caller.scopes] }, caller };
    },
});
