import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { fieldLines, type FieldList } from '../../http/reply.ts';
import type { Arrived } from '../../pipeline/exchange.ts';
import { tcpBelow } from '../listening/node-internals.ts';

/**
 * The parts of `node:http` in use. An import of the module evaluates all of its exports, one of
 * which loads Node's fetch: 45 ms of CPU time at each start.
 */
export const { createServer, STATUS_CODES } = process.getBuiltinModule('node:http');

const contentDisposition = 'content-disposition';

/**
 * Returns fields in an order in which Node sends them unchanged: Node reads a Content-Disposition
 * after Content-Length as UTF-8, and changes or refuses each byte over 127.
 */
export function nodeFields(fields: FieldList): string[] {
  const isDisposition = (name: string | undefined): boolean =>
    name?.length === contentDisposition.length && name.toLowerCase() === contentDisposition;
  if (!fields.some((name, at) => at % 2 === 0 && isDisposition(name))) return fields as string[];
  const pairOf = (at: number): number => at - (at % 2);
  const [first, rest] = [true, false].map((isFirst) =>
    fields.filter((_, at) => isDisposition(fields[pairOf(at)]) === isFirst),
  );
  return [...(first ?? []), ...(rest ?? [])];
}

/**
 * Resets the connection of an HTTP/1.0 client whose answer is not complete: its content ends with
 * the connection, and an orderly end would make a part look like the whole (RFC 9112 §8). Over TLS
 * too, since many clients ignore that close_notify is missing.
 */
export function resetIfUnframed({
  head,
  peer,
  socket,
}: Arrived & { readonly socket: Socket }): void {
  // A unix socket has no reset.
  if (head.version !== '1.0' || peer.listener === 'unix') return;
  const tcp = peer.tls === undefined ? socket : tcpBelow(socket);
  tcp?.resetAndDestroy();
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
