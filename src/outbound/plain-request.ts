import type { Dispatcher } from 'undici';
import { tokenSource } from '../http/syntax.ts';

/** A request that a plain connection sends. */
export interface PlainRequest {
  /** All that is sent, latin1. */
  readonly head: string;
  /** The same for undici, should that have to go on with it. */
  readonly options: Dispatcher.DispatchOptions;
}

const target = /^\/[\x21-\x7e]*$/;
const fieldName = new RegExp(`^${tokenSource}$`);
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Said of the message or its connection, which is not for whoever asks to say. */
const framing: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Makes a GET without content ready for a plain connection; undefined for any other request, and
 * for what HTTP cannot carry, which undici refuses.
 */
export function plainRequest(
  options: Dispatcher.DispatchOptions,
  { host, protocol }: URL,
): PlainRequest | undefined {
  const { method, path, headers, body, upgrade } = options;
  if (method !== 'GET' || body !== null || upgrade !== undefined) return undefined;
  if (!target.test(path)) return undefined;
  let hosts = `host: ${host}\r\n`;
  let fields = '';
  const named = headers as readonly string[];
  for (let at = 0; at + 1 < named.length; at += 2) {
    const [name = '', value = ''] = [named[at], named[at + 1]];
    const lower = name.toLowerCase();
    if (!fieldName.test(name) || !fieldValue.test(value) || framing.has(lower)) return undefined;
    if (lower !== 'host') fields += `${name}: ${value}\r\n`;
    // undici asks for a certificate of that name.
    else if (protocol === 'https:') return undefined;
    else hosts = `host: ${value}\r\n`;
  }
  const head = `GET ${path} HTTP/1.1\r\n${hosts}connection: keep-alive\r\n${fields}\r\n`;
  return { head, options };
}
