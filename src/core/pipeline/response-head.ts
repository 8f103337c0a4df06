import { formatHttpDate } from '../http/date.ts';
import { fieldLines, replyField, type FieldList, type Reply } from '../http/reply.ts';
import { keepAliveTimeoutMs } from '../server/limits.ts';

/** An import of the module would load all that it exports, such as Node's fetch. */
export const { STATUS_CODES } = process.getBuiltinModule('node:http');

const fieldName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** A character that a field value cannot contain (RFC 9110 §5.5). */
const notInValue = /[^\t\x20-\x7e\x80-\xff]/;

/** Returns the status line of a response (RFC 9112 §4) with its line end. */
export function statusLine(status: number): string {
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`;
}

/**
 * Returns status line and fields of an answer as they are sent (RFC 9112 §4, §5), latin1. Throws a
 * TypeError for a field that is not valid.
 */
export function headText({ status, fields }: Pick<Reply, 'status' | 'fields'>): string {
  let text = statusLine(status);
  for (let at = 0; at < fields.length; at += 2) {
    const [name = '', value = ''] = [fields[at], fields[at + 1]];
    if (!isValidField(name, value)) throw new TypeError(`the field ${name} cannot be sent`);
    text += `${name}: ${value}\r\n`;
  }
  return text;
}

/**
 * Returns the line of a Content-Length that an answer with its whole content needs (RFC 9112 §6.3);
 * empty if it has one, or no content by its nature.
 */
export function lengthLine(reply: Reply, method: string): string {
  const { status, body } = reply;
  if (method === 'HEAD' || status === 204 || status === 304) return '';
  if (replyField(reply, 'content-length') !== undefined) return '';
  return `Content-Length: ${body.kind === 'bytes' ? body.bytes.length : 0}\r\n`;
}

/** Returns an interim response (RFC 9110 §15.2), latin1, without the fields that are not valid. */
export function interimText(status: number, fields: FieldList): string {
  let text = statusLine(status);
  for (let at = 0; at < fields.length; at += 2) {
    const [name = '', value = ''] = [fields[at], fields[at + 1]];
    if (isValidField(name, value)) text += `${name}: ${value}\r\n`;
  }
  return `${text}\r\n`;
}

function isValidField(name: string, value: string): boolean {
  return fieldName.test(name) && !notInValue.test(value);
}

const keepAliveSeconds = keepAliveTimeoutMs / 1_000;
const keepAlive = `Connection: keep-alive\r\nKeep-Alive: timeout=${keepAliveSeconds}\r\n\r\n`;
const close = 'Connection: close\r\n\r\n';

/**
 * Returns the last fields of a head. `dateMs` (milliseconds since
 * 1970) is for answers without a Date of their own.
 */
export function headEnd(dateMs: number | undefined, shouldKeepAlive: boolean): string {
  const end = shouldKeepAlive ? keepAlive : close;
  return dateMs === undefined ? end : `Date: ${dateText(dateMs)}\r\n${end}`;
}

let formattedSecond = -1;
let formatted = '';

/** Formats a date of RFC 9110 §5.6.7, once a second. */
function dateText(nowMs: number): string {
  const second = Math.floor(nowMs / 1_000);
  if (second !== formattedSecond) {
    formattedSecond = second;
    formatted = formatHttpDate(second * 1_000);
  }
  return formatted;
}

/**
 * Returns fields as they are sent, each with its line end, and a Date (RFC 9110 §6.6.1) if there is
 * none among them. `nowMs` is milliseconds since 1970.
 */
export function fieldText(fields: FieldList, nowMs: number): string {
  const isDated = fieldLines(fields, 'date').length > 0;
  const all = isDated ? fields : [...fields, 'Date', formatHttpDate(nowMs)];
  return all
    .flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${all[at + 1] ?? ''}\r\n`] : []))
    .join('');
}
