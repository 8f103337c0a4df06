import { parseAddress } from '../model/cidr.ts';
import { originBytesMax } from '../model/limits.ts';

/** The schemes that are served (RFC 9110 §4.2). */
export type Scheme = 'http' | 'https';

const defaultPorts: Readonly<Record<Scheme, string>> = { http: '80', https: '443' };

const authorityPattern = /^(?:([A-Za-z0-9._-]+)|(\[[0-9A-Fa-f:.]+\]))(?::([1-9]\d{0,4}))?$/;
const endsInNumber = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/;

/**
 * The one form of a `host[:port]` (RFC 9110 §7.2, §4.2.3): lower case, without the final dot of a
 * name and without the scheme's default port, an IPv6 address in the form that URL gives it.
 * Undefined for everything else: userinfo, path, whitespace, lists, percent escapes and non-ASCII
 * (a browser sends punycode), an empty label, a port outside 1..65535, and numbers that only some
 * would read as an IPv4 address (`127.1`, `0x7f.1`).
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

function canonicalName(lowerCase: string): string | undefined {
  const name = lowerCase.endsWith('.') ? lowerCase.slice(0, -1) : lowerCase;
  if (name === '' || name.startsWith('.') || name.endsWith('.') || name.includes('..')) {
    return undefined;
  }
  return endsInNumber.test(name) && parseAddress(name) === undefined ? undefined : name;
}

function canonicalIpv6(bracketed: string): string | undefined {
  return URL.parse(`http://${bracketed}/`)?.hostname;
}
