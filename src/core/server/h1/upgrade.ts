import type { IncomingMessage } from 'node:http';
import { Failure } from '../../values/failure.ts';
import type { Caller } from '../../values/key.ts';
import { servicePath } from '../../values/path.ts';
import { hasBody } from '../../pipeline/body.ts';
import {
  acceptRequest,
  authenticateRequest,
  withoutUser,
  type IncomingRequest,
} from '../../pipeline/incoming-request.ts';
import type { Serving } from '../../pipeline/serving.ts';
import { peerOf } from '../listening/accept.ts';
import type { Sockets } from '../websocket/socket.ts';
import type { UpgradeRequest } from '../../pipeline/exchange.ts';
import { headOf } from './node-exchange.ts';

/** Whether a request opens a websocket with no doubt about its form (RFC 6455 §4.1). */
function opensWebsocket(message: IncomingMessage): boolean {
  const { method, headers, httpVersion } = message;
  return (
    method === 'GET' &&
    httpVersion === '1.1' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers.expect === undefined &&
    !hasBody(headers)
  );
}

/**
 * Whether to act on the Upgrade of a request: it opens a websocket, or a rule forwards it to its
 * source. The server ignores any other one (RFC 9110 §7.8).
 */
export function switchesProtocol(message: IncomingMessage, serving: Serving): boolean {
  if (opensWebsocket(message)) return true;
  const { method, headers, httpVersion } = message;
  if (method === 'CONNECT' || httpVersion !== '1.1' || headers.expect !== undefined) return false;
  if (hasBody(headers) && !readsContent) return false;
  try {
    const incoming = acceptRequest(serving, {
      head: headOf(message),
      peer: peerOf(message.socket),
    });
    const { target, fields } = incoming;
    if (servicePath(target.path, serving.config.server.base) !== undefined) return false;
    return serving.site.forwards({ ...target, fields, method: method ?? '' });
  } catch {
    // The answer without the Upgrade says why.
    return false;
  }
}

/** Whether Node's parser reads the content of a request that switches protocols. */
const readsContent = Number(process.versions.node.split('.', 1)[0]) >= 26;

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
