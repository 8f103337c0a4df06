import { headerFieldsMax } from '../../http/limits.ts';
import { tokenSource, trimOws } from '../../http/syntax.ts';
import type { MessageHead } from '../../pipeline/exchange.ts';

/** The head of a GET or HEAD without fields about framing or the connection, except Connection. */
export interface PlainHead extends MessageHead {
  readonly method: 'GET' | 'HEAD';
  readonly version: '1.1';
  /** False if the client says `Connection: close` (RFC 9112 §9.6). */
  readonly shouldKeepAlive: boolean;
}

const requestLine = /^(GET|HEAD) (\/[\w/?.~!$&'()*+,;=:@%[\]-]*) HTTP\/1\.1\r\n/;
const fieldLine = new RegExp(`(${tokenSource}):([\\t\\x20-\\x7e\\x80-\\xff]*)\\r\\n`, 'y');

/** Fields about framing, or about one connection only (RFC 9112 §6, RFC 9110 §7.6, §10.1). */
const notPlain: ReadonlySet<string> = new Set([
  'content-length',
  'expect',
  'http2-settings',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
const longestNotPlain = 'transfer-encoding'.length;

/**
 * Reads a latin1 text that is exactly the head of a GET or HEAD in HTTP/1.1, in the most ordinary
 * form of RFC 9112 §3 and §5. Undefined for any other text, malformed or only unusual: Node's
 * parser reads it.
 */
export function readSimpleHead(text: string): PlainHead | undefined {
  const line = requestLine.exec(text);
  if (line === null || !text.endsWith('\r\n\r\n')) return undefined;
  const [{ length }, method, url = ''] = line;
  const fields: string[] = [];
  const end = text.length - 2;
  let shouldKeepAlive = true;
  let at = length;
  while (at < end) {
    fieldLine.lastIndex = at;
    const field = fieldLine.exec(text);
    if (field === null) return undefined;
    const name = field[1] ?? '';
    const value = trimOws(field[2] ?? '');
    if (name.length <= longestNotPlain) {
      const lower = name.toLowerCase();
      if (notPlain.has(lower)) return undefined;
      if (lower === 'connection') {
        const option = value.toLowerCase();
        if (option === 'close') shouldKeepAlive = false;
        else if (option !== 'keep-alive') return undefined;
      }
    }
    fields.push(name, value);
    at = fieldLine.lastIndex;
  }
  if (fields.length > 2 * headerFieldsMax) return undefined;
  const known = method === 'HEAD' ? 'HEAD' : 'GET';
  return { method: known, url, version: '1.1', fields, shouldKeepAlive };
}
