import type { Socket } from 'node:net';
import type { ReadHead } from '../../http/reading/head.ts';
import type { FieldList } from '../../http/reply.ts';
import { Failure } from '../../values/failure.ts';
import type { Caller } from '../../values/key.ts';
import { servicePath } from '../../values/path.ts';
import {
  acceptRequest,
  authenticateRequest,
  withoutUser,
  type IncomingRequest,
} from '../../pipeline/incoming-request.ts';
import type { Serving } from '../../pipeline/serving.ts';
import type { Peer } from '../../values/network/peer.ts';
import type { Sockets } from '../websocket/socket.ts';
import type { UpgradeRequest } from '../../pipeline/exchange.ts';

/** Returns a request for another protocol on its connection. */
export function upgradeOf(
  { socket, peer }: { readonly socket: Socket; readonly peer: Peer },
  {
    head,
    body,
    ahead,
  }: Pick<UpgradeRequest, 'ahead'> &
    Partial<Pick<UpgradeRequest, 'body'>> & {
      readonly head: ReadHead;
    },
): UpgradeRequest {
  const handshake = { method: head.method, headers: joinedFields(head.fields) };
  return { head, peer, socket, body, ahead, handshake };
}

function joinedFields(fields: FieldList): Readonly<Record<string, string>> {
  const joined = Object.create(null) as Record<string, string>;
  for (let at = 0; at < fields.length; at += 2) {
    const [name = '', value = ''] = [fields[at]?.toLowerCase(), fields[at + 1]];
    joined[name] = joined[name] === undefined ? value : `${joined[name]}, ${value}`;
  }
  return joined;
}

/** Whether a request opens a websocket with no doubt about its form (RFC 6455 §4.1). */
function opensWebsocket({ method, version, upgrade, expect, framing }: ReadHead): boolean {
  const isPlain = method === 'GET' && version === '1.1' && expect === undefined && framing === 0;
  return isPlain && upgrade?.toLowerCase() === 'websocket';
}

/**
 * Whether to act on the Upgrade of a request: it opens a websocket, or a rule forwards it to its
 * source. The server ignores any other one (RFC 9110 §7.8).
 */
export function switchesProtocol(head: ReadHead, peer: Peer, serving: Serving): boolean {
  if (opensWebsocket(head)) return true;
  const { method, version, expect } = head;
  if (method === 'CONNECT') return true;
  if (version !== '1.1' || expect !== undefined) return false;
  try {
    const { target, fields } = acceptRequest(serving, { head, peer });
    if (servicePath(target.path, serving.config.server.base) !== undefined) return false;
    return serving.site.forwards({ ...target, fields, method });
  } catch {
    // The answer without the Upgrade says why.
    return false;
  }
}

/** A validated request for a websocket. */
interface Asked extends Pick<UpgradeRequest, 'handshake' | 'socket' | 'ahead'> {
  readonly incoming: IncomingRequest;
}

/**
 * Opens a websocket and returns its caller. Throws `not_found`, `forbidden` for pages of a foreign
 * origin, or the refusal of a key.
 */
export function openWebsocket(
  sockets: Sockets,
  serving: Serving,
  { handshake, incoming, socket, ahead }: Asked,
): Caller {
  const { target, fields } = incoming;
  if (servicePath(target.path, serving.config.server.base) !== '/ws') {
    throw new Failure('not_found', 'There is no websocket here.');
  }
  const isOwn = requireAllowedOrigin(fields.origin, target.origin, serving.config.auth.corsOrigins);
  const asking = isOwn ? incoming : withoutUser(incoming);
  const caller = authenticateRequest(serving, asking);
  sockets.open(handshake, socket, ahead, {
    caller,
    origin: target.origin,
    fields: asking.fields,
    claims: asking.claims,
    certificate: asking.certificate,
  });
  return caller;
}

/**
 * Whether a page of the own origin opens a websocket, or a client that is no page. Throws
 * `forbidden` for a page of an origin that `[auth] cors_origins` does not name.
 */
function requireAllowedOrigin(
  origin: string | undefined,
  own: string,
  allowed: readonly string[],
): boolean {
  if (origin === undefined || origin === own) return true;
  if (allowed.includes('*') || allowed.includes(origin)) return false;
  throw new Failure('forbidden', 'Pages of this origin may not open a websocket here.');
}
