import { tokenSource, trimOws } from '../../http/syntax.ts';
import type { MessageHead } from '../../pipeline/exchange.ts';

/**
 * The head of a request in the form of HTTP/1.1 (RFC 9113 §8.3.1), so that one validation serves
 * all versions: `:authority` becomes Host, and content of unknown length becomes chunked.
 */
export interface Http2RequestHead extends MessageHead {
  /** Path and query; an absolute URL if it names another scheme than that of the connection. */
  readonly url: string;
  readonly version: '2';
  /** The value of Content-Length; undefined without one. */
  readonly length: number | undefined;
  /** The value of `:protocol` (RFC 8441 §4). */
  readonly protocol: string | undefined;
  /** The value of Priority (RFC 9218 §5). */
  readonly priority: string | undefined;
}

/** The surroundings of a head. */
interface Surroundings {
  /** Whether content follows. */
  readonly hasContent: boolean;
  /** Whether the connection uses TLS. */
  readonly isSecure: boolean;
}

/** Fields that belong to a connection of HTTP/1.1 (RFC 9113 §8.2.2). */
const connectionFields: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
]);

const lowerName = new RegExp(`^(?!.*[A-Z])${tokenSource}$`);
/** RFC 3986 §3.1. With other characters, `:scheme` could name a host besides `:authority`. */
const validScheme = /^[a-z][a-z\d+.-]*$/i;
/** A character that no value has (RFC 9110 §5.5). */
const notInValue = /[^\t\x20-\x7e\x80-\xff]/;

/** Names that were valid before. */
const knownNames = new Set<string>();
const knownNamesMax = 1_000;

/**
 * Reads the decoded fields of a request. Undefined if it is malformed: a stream error
 * PROTOCOL_ERROR (§8.1.1).
 */
export function readRequestHead(
  decoded: readonly string[],
  { hasContent, isSecure }: Surroundings,
): Http2RequestHead | undefined {
  const pseudo = new Pseudo();
  let at = 0;
  for (; decoded[at]?.charCodeAt(0) === colon; at += 2) {
    if (!pseudo.add(decoded[at] ?? '', decoded[at + 1] ?? '')) return undefined;
  }
  if (!pseudo.isWhole) return undefined;
  const { method = '', path = '', scheme = '', authority, protocol } = pseudo;
  const fields = authority === undefined ? [] : ['host', authority];
  let length: string | undefined;
  let cookies: string | undefined;
  let priority: string | undefined;
  for (; at < decoded.length; at += 2) {
    const name = decoded[at] ?? '';
    // As over HTTP/1.1: some clients send spaces around a value, although §8.2.1 forbids them.
    const value = trimOws(decoded[at + 1] ?? '');
    if (!isField(name, value)) return undefined;
    switch (name) {
      case 'cookie':
        // Browsers send each cookie in a field of its own (§8.2.3).
        cookies = cookies === undefined ? value : `${cookies}; ${value}`;
        continue;
      case 'host':
        // An equal Host is harmless; validation refuses a different one.
        if (value === authority) continue;
        break;
      case 'content-length':
        if (length !== undefined || !/^\d{1,16}$/.test(value)) return undefined;
        length = value;
        break;
      case 'te':
        if (value !== 'trailers') return undefined;
        break;
      case 'priority':
        priority = value;
        break;
    }
    fields.push(name, value);
  }
  if (cookies !== undefined) fields.push('cookie', cookies);
  // What follows an extended CONNECT is no content (RFC 8441 §5).
  const isContent = hasContent && protocol === undefined;
  if (isContent && length === undefined) fields.push('transfer-encoding', 'chunked');
  if (!hasContent && length !== undefined && Number(length) > 0) return undefined;
  const version = '2' as const;
  const known = { method, version, fields, protocol, priority, length: numberOf(length) };
  // CONNECT has neither scheme nor path (§8.5).
  if (method === 'CONNECT' && protocol === undefined) return { ...known, url: authority ?? '' };
  // A scheme other than the connection's names another site (RFC 9110 §7.4).
  const isOwn = scheme === (isSecure ? 'https' : 'http');
  return { ...known, url: isOwn ? path : `${scheme}://${authority ?? ''}${path}` };
}

/** Whether decoded fields are valid trailer fields (§8.1): without pseudo-header fields. */
export function areTrailers(decoded: readonly string[]): boolean {
  for (let at = 0; at < decoded.length; at += 2) {
    if (!isField(decoded[at] ?? '', decoded[at + 1] ?? '')) return false;
  }
  return true;
}

const colon = 0x3a;

function numberOf(length: string | undefined): number | undefined {
  return length === undefined ? undefined : Number(length);
}

function isField(name: string, value: string): boolean {
  if (!knownNames.has(name)) {
    if (!lowerName.test(name) || connectionFields.has(name)) return false;
    if (knownNames.size < knownNamesMax) knownNames.add(name);
  }
  return !notInValue.test(value);
}

/** The pseudo-header fields of a request (§8.3.1). */
class Pseudo {
  method: string | undefined;
  scheme: string | undefined;
  path: string | undefined;
  authority: string | undefined;
  protocol: string | undefined;

  /** Adds one; false if it is unknown, comes twice, or is malformed. */
  add(name: string, value: string): boolean {
    if (notInValue.test(value)) return false;
    const key = keys[name];
    if (key === undefined || this[key] !== undefined) return false;
    this[key] = value;
    return true;
  }

  /** Whether those are there that the method needs, and no others (§8.3.1, §8.5, RFC 8441 §4). */
  get isWhole(): boolean {
    const { method, scheme, path, authority, protocol } = this;
    if (method === undefined || method === '') return false;
    if (method === 'CONNECT' && protocol === undefined) {
      return scheme === undefined && path === undefined && authority !== undefined;
    }
    if (protocol !== undefined && (method !== 'CONNECT' || authority === undefined)) return false;
    if (scheme === undefined || !validScheme.test(scheme) || path === undefined) return false;
    return path.startsWith('/') || (path === '*' && method === 'OPTIONS');
  }
}

const keys: Readonly<
  Record<string, 'method' | 'scheme' | 'path' | 'authority' | 'protocol' | undefined>
> = Object.assign(
  Object.create(null) as object,
  {
    ':method': 'method',
    ':scheme': 'scheme',
    ':path': 'path',
    ':authority': 'authority',
    ':protocol': 'protocol',
  } as const,
);
