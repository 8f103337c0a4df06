import type { ServerResponse } from 'node:http';
import { fieldLines, type FieldList } from '../../http/reply.ts';
import type { ResponseMessage } from '../http-message.ts';
import { tcpBelow } from '../node-internals.ts';

/**
 * The parts of `node:http` in use. An import of the module evaluates all of its exports, one of
 * which loads Node's fetch: 45 ms of CPU time at each start.
 */
export const {
  createServer,
  ServerResponse: NodeResponse,
  STATUS_CODES,
} = process.getBuiltinModule('node:http');

/** Whether a response is one of Node's HTTP server. */
export function isNodeResponse(response: ResponseMessage): response is ServerResponse {
  return response instanceof NodeResponse;
}

/**
 * Resets the connection of an HTTP/1.0 client whose answer is not complete: its content ends with
 * the connection, and an orderly end would make a part look like the whole (RFC 9112 §8). Over TLS
 * too, since many clients ignore that close_notify is missing.
 */
export function resetIfUnframed(response: ResponseMessage): void {
  if (!isNodeResponse(response) || response.req.httpVersion !== '1.0') return;
  const { socket } = response;
  const tcp = socket !== null && 'encrypted' in socket ? tcpBelow(socket) : socket;
  // A unix socket has no reset.
  if (tcp?.remoteAddress !== undefined) tcp.resetAndDestroy();
}

/** The parts of Node's responses that interim responses need; Node 24 has no writeInformation. */
type InterimSender = Pick<
  ServerResponse,
  'destroyed' | 'headersSent' | 'writeEarlyHints' | 'writeProcessing'
> & { readonly writeInformation?: (status: number, fields: FieldList) => unknown };

/**
 * Sends an interim response (RFC 9110 §15.2), unless the head of the final one is sent or Node
 * refuses it. Node 24 sends a 102 and the links of a 103 only.
 */
export function sendInterim(response: InterimSender, status: number, fields: FieldList): void {
  if (response.headersSent || response.destroyed) return;
  try {
    if (response.writeInformation !== undefined) response.writeInformation(status, fields);
    else if (status === 103) response.writeEarlyHints({ link: [...fieldLines(fields, 'link')] });
    else if (status === 102) response.writeProcessing();
  } catch {
    // Node refuses an invalid field.
  }
}
