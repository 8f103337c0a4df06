import { ipv4Number } from './cidr.ts';
import { originBytesMax } from '../limits.ts';

/** The schemes that the server serves (RFC 9110 §4.2). */
export type Scheme = 'http' | 'https';

/** The default port of each scheme (RFC 9110 §4.2.1, §4.2.2). */
export const defaultPorts: Readonly<Record<Scheme, string>> = { http: '80', https: '443' };

const authorityPattern = /^(?:([A-Za-z0-9._-]+)|(\[[0-9A-Fa-f:.]+\]))(?::([1-9]\d{0,4}))?$/;
const originPattern = /^(https?):\/\/([^/?#\\@\s]+)$/i;
const isAscii = /^[\x21-\x7e]+$/;
const endsInNumber = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/;

/**
 * The canonical form of a `host[:port]` (RFC 9110 §7.2, §4.2.3): lower case, without the final dot
 * of a name and without the scheme's default port; an IPv6 address as URL writes it. Undefined for
 * anything else: userinfo, path, whitespace, lists, percent escapes and non-ASCII (browsers send
 * punycode), an empty label, a port outside 1..65535, and numbers that only some programs read as
 * an IPv4 address (`127.1`, `0x7f.1`).
 */
export function parseAuthority(text: string, scheme: Scheme): string | undefined {
  if (text.length > originBytesMax) return undefined;
  const match = authorityPattern.exec(text);
  if (match === null) return undefined;
  const [, name, address = '', port] = match;
  const host = name === undefined ? canonicalIpv6(address) : canonicalName(name.toLowerCase());
  if (host === undefined) return undefined;
  if (port === undefined || port === defaultPorts[scheme]) return host;
  return Number(port) > 65_535 ? undefined : `${host}:${port}`;
}

/**
 * An origin (RFC 6454 §6.2) in the canonical form that `parseRequest` uses: scheme, host and a port
 * that is not the scheme's default; an international name in its xn-- form. Undefined for any other
 * text, such as an origin with a path.
 */
export function parseOrigin(text: string): string | undefined {
  const [, scheme = '', written = ''] = originPattern.exec(text) ?? [];
  if (text.length > originBytesMax) return undefined;
  const known = scheme.toLowerCase() === 'https' ? 'https' : 'http';
  const ascii = isAscii.test(written) ? written : asciiAuthority(written);
  const authority = ascii === undefined ? undefined : parseAuthority(ascii, known);
  return authority === undefined ? undefined : `${known}://${authority}`;
}

function canonicalName(lowerCase: string): string | undefined {
  const name = lowerCase.endsWith('.') ? lowerCase.slice(0, -1) : lowerCase;
  if (name === '' || name.startsWith('.') || name.endsWith('.') || name.includes('..')) {
    return undefined;
  }
  return endsInNumber.test(name) && ipv4Number(name) === undefined ? undefined : name;
}

function canonicalIpv6(bracketed: string): string | undefined {
  return URL.parse(`http://${bracketed}/`)?.hostname;
}

/** The authority with its name as an A-label (RFC 5891), mapped by UTS 46 as browsers do. */
function asciiAuthority(written: string): string | undefined {
  const [, name = '', port = ''] = /^([^:%]+)(:\d+)?$/.exec(written) ?? [];
  const ascii = URL.parse(`http://${name}/`)?.hostname;
  return ascii === undefined ? undefined : `${ascii}${port}`;
}
