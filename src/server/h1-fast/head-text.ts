import { replyField, type Reply } from '../../http/reply.ts';
import { keepAliveTimeoutMs } from '../limits.ts';
import { STATUS_CODES } from '../h1/node-http.ts';

const fieldName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** What a field value cannot hold (RFC 9110 §5.5). */
const notInValue = /[^\t\x20-\x7e\x80-\xff]/;

/**
 * Status line and fields of an answer as they are sent (RFC 9112 §4, §5), latin1; undefined where a
 * field is none, which Node says more of, or where the end of the answer takes more to be told.
 */
export function headText(reply: Pick<Reply, 'status' | 'fields' | 'body'>): string | undefined {
  if (!tellsItsEnd(reply)) return undefined;
  const { status, fields } = reply;
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`;
  for (let at = 0; at < fields.length; at += 2) {
    const [name = '', value = ''] = [fields[at], fields[at + 1]];
    if (!fieldName.test(name) || notInValue.test(value)) return undefined;
    text += `${name}: ${value}\r\n`;
  }
  return text;
}

/** Whether its head says where an answer ends (RFC 9112 §6.3), as that of a 205 has to. */
function tellsItsEnd(reply: Pick<Reply, 'status' | 'fields' | 'body'>): boolean {
  const { status, body } = reply;
  if (status === 204 || status === 304) return body.kind === 'none';
  return status >= 200 && replyField(reply, 'content-length') !== undefined;
}

const keepAliveSeconds = keepAliveTimeoutMs / 1_000;
const staying = `Connection: keep-alive\r\nKeep-Alive: timeout=${keepAliveSeconds}\r\n\r\n`;

/**
 * What Node's server ends a head with on a connection that goes on: with the date of a moment
 * (milliseconds since 1970) where the answer has none of its own.
 */
export function headEnd(nowMs: number | undefined): string {
  return nowMs === undefined ? staying : `Date: ${dateText(nowMs)}\r\n${staying}`;
}

let secondShown = -1;
let shown = '';

/** A date of RFC 9110 §5.6.7, made once a second. */
function dateText(nowMs: number): string {
  const second = Math.floor(nowMs / 1_000);
  if (second !== secondShown) {
    secondShown = second;
    shown = new Date(second * 1_000).toUTCString();
  }
  return shown;
}
