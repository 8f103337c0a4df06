import type { Authenticate } from './authenticate.ts';
import { scopes } from '../../model/key.ts';
import type { Handler } from '../operation.ts';

/**
 * session.authenticate: gives a websocket its key after the fact, for browsers cannot set header
 * fields on an upgrade. Refuses with `unauthenticated` or `rate_limited`; the connection then keeps
 * the caller it had.
 */
export function authenticateSession(authenticate: Authenticate): Handler<{ apikey: string }> {
  return {
    summary: 'Gives a websocket its API key; a browser cannot send it with the upgrade.',
    output: {
      title: 'Session',
      type: 'object',
      required: ['scopes'],
      properties: { scopes: { type: 'array', items: { type: 'string', enum: scopes } } },
    },
    input: { type: 'object', required: ['apikey'], properties: { apikey: { type: 'string' } } },
    run: ({ apikey }, call) => {
      const { address } = call.caller;
      const caller = authenticate({ apikey, address });
      return { kind: 'data', data: { scopes: [...caller.scopes] }, caller };
    },
  };
}
