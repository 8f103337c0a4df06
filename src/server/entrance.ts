import type { IncomingMessage } from 'node:http';
import { openDoor, type Entrance } from '../http/target.ts';
import { cidrsContain } from '../model/cidr.ts';
import type { Caller } from '../model/key.ts';
import type { Serving } from './serving.ts';

/** Takes a request through the door; throws `invalid` for what it does not let in. */
export function enter(serving: Serving, message: IncomingMessage): Entrance {
  return openDoor(
    {
      method: message.method ?? '',
      target: message.url ?? '',
      httpVersion: message.httpVersion,
      rawFields: message.rawHeaders,
      secure: false,
      peerAddress: message.socket.remoteAddress ?? '',
    },
    serving.config.server,
  );
}

/** Who sent a request, by its API key; throws `unauthenticated` or `rate_limited`. */
export function identify(serving: Serving, message: IncomingMessage, entrance: Entrance): Caller {
  return serving.authenticate({
    apikey: entrance.fields.apikey,
    address: entrance.address,
    user: userOf(serving, message, entrance),
  });
}

/** The signed-in user, as a trusted proxy names it in the field that the ini file says. */
export function userOf(
  { config }: Serving,
  { socket }: IncomingMessage,
  { fields }: Entrance,
): string | undefined {
  const { userHeader } = config.auth;
  if (userHeader === undefined) return undefined;
  const trusted = cidrsContain(config.server.trustProxy, socket.remoteAddress ?? '');
  return trusted ? fields[userHeader] : undefined;
}
