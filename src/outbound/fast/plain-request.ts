import type { Dispatcher } from 'undici';
import { tokenSource } from '../../http/syntax.ts';

/** A request that a plain connection sends. */
export interface SerializedRequest {
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
 * Makes what an origin is asked ready for plain connections: a GET without content. Undefined for
 * any other request, and for what HTTP cannot carry, which undici refuses.
 */
export function plainRequests(
  origin: URL,
): (options: Dispatcher.DispatchOptions) => SerializedRequest | undefined {
  return (options) => {
    const { method, body, upgrade } = options;
    if (method !== 'GET' || body !== null || upgrade !== undefined) return undefined;
    const fields = options.headers as readonly string[];
    const head = headOf(options.path, fields, origin);
    if (head === undefined) return undefined;
    return { head, options };
  };
}

function headOf(
  path: string,
  named: readonly string[],
  { host, protocol }: URL,
): string | undefined {
  if (!target.test(path)) return undefined;
  let hosts = `host: ${host}\r\n`;
  let fields = '';
  for (let at = 0; at + 1 < named.length; at += 2) {
    const [name = '', value = ''] = [named[at], named[at + 1]];
    const lower = name.toLowerCase();
    if (!fieldName.test(name) || !fieldValue.test(value) || framing.has(lower)) return undefined;
    if (lower !== 'host') fields += `${name}: ${value}\r\n`;
    // undici asks for a certificate of that name.
    else if (protocol === 'https:') return undefined;
    else hosts = `host: ${value}\r\n`;
  }
  return `GET ${path} HTTP/1.1\r\n${hosts}connection: keep-alive\r\n${fields}\r\n`;
}
