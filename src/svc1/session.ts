import type { Authenticate } from './authenticate.ts';
import type { Handler } from './operation.ts';

/**
 * session.authenticate: gives a websocket its key after the fact, for browsers cannot set header
 * fields on an upgrade. Refuses with `unauthenticated` or `rate_limited`; the connection then keeps
 * the caller it had.
 */
export function authenticateSession(authenticate: Authenticate): Handler<{ apikey: string }> {
  return {
    input: { type: 'object', required: ['apikey'], properties: { apikey: { type: 'string' } } },
    run: ({ apikey }, call) => {
      const { address, user } = call.caller;
      const caller = authenticate({ apikey, address, user });
      return { kind: 'data', data: { scopes: [...caller.scopes] }, caller };
    },
  };
}
