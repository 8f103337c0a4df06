import { scopesSchema } from '../../keys/keys.ts';
import { defineOperation } from '../../../core/operations/operation.ts';
import type { Authenticate } from '../../../core/operations/keys/authenticate.ts';

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
