import ipaddr from 'ipaddr.js';
import { Failure } from '../values/failure.ts';
import { cidrsContain, isCidr, parseAddress, parseCidr } from '../values/network/cidr.ts';
import { type PrivatePlace, parseUnixUrl, permitsSocket } from '../values/network/unix-socket.ts';

/**
 * The global unicast addresses that IANA allocates (RFC 4291 §2.4). Other addresses embed another
 * address, or are reserved.
 */
const globalUnicast = ipaddr.IPv6.parse('2000::');
const globalUnicastBits = 3;

/** The metadata services of cloud providers. The prefix of the first one looks public. */
const metadata = ['168.63.129.16', '169.254.169.254', '100.100.100.200', 'fd00:ec2::254'].flatMap(
  (text) => parseCidr(text) ?? [],
);

/**
 * The special ranges of ipaddr.js (IANA's registries, RFC 6890), as messages name them. The
 * dialler connects to the range `unicast` only.
 */
const rangeNames: Readonly<Record<string, string>> = {
  unspecified: 'unspecified',
  broadcast: 'broadcast',
  multicast: 'multicast',
  linkLocal: 'link-local',
  loopback: 'loopback',
  carrierGradeNat: 'carrier-grade NAT',
  private: 'private',
  uniqueLocal: 'unique local',
  '6to4': '6to4',
  teredo: 'Teredo',
  rfc6052: 'NAT64',
  rfc6145: 'IPv4-translated',
};

/**
 * Why the dialler refuses an IP address; undefined for an allowed one. Allowed are globally
 * reachable unicast addresses and the networks in `allowPrivate`
 * (docs/design/webhooks.md#addresses). An IPv4-mapped IPv6 address counts as its IPv4 address. Any
 * other address that embeds an IPv4 address (NAT64, 6to4, Teredo, IPv4-compatible) is refused,
 * unless `allowPrivate` has it in that form.
 */
export function addressProblem(
  address: string,
  allowPrivate: readonly PrivatePlace[],
): string | undefined {
  const parsed = parseAddress(address);
  if (parsed === undefined) return `${JSON.stringify(address)} is not an IP address`;
  if (cidrsContain(allowPrivate.filter(isCidr), address)) return undefined;
  const kind = forbiddenKind(parsed, address);
  return kind && `${address} (${kind}) is not in allow_private`;
}

/**
 * Why the dialler refuses the host of a URL, if that is an IP address or localhost, or a unix
 * socket; undefined if it is allowed, is a name that DNS has to resolve, or the text is no URL.
 */
export function urlAddressProblem(
  url: string,
  allowPrivate: readonly PrivatePlace[],
): string | undefined {
  const socket = parseUnixUrl(url);
  if (socket !== undefined) return socketProblem(socket.socketPath, allowPrivate);
  const address = addressOf(url);
  return address === undefined ? undefined : addressProblem(address, allowPrivate);
}

/** Why the dialler refuses a unix socket; undefined for an allowed one. */
export function socketProblem(
  path: string,
  allowPrivate: readonly PrivatePlace[],
): string | undefined {
  return permitsSocket(allowPrivate, path) ? undefined : `unix:${path} is not in allow_private`;
}

function addressOf(url: string): string | undefined {
  try {
    const host = outboundUrl(url).hostname.replace(/^\[(.*)\]$/, '$1');
    if (host === 'localhost' || host.endsWith('.localhost')) return '127.0.0.1';
    return /^[\d.]+$|:/.test(host) ? host : undefined;
  } catch {
    return undefined;
  }
}

function forbiddenKind(parsed: ipaddr.IPv4 | ipaddr.IPv6, address: string): string | undefined {
  if (cidrsContain(metadata, address)) return 'metadata';
  const range = parsed.range();
  if (range !== 'unicast') return rangeNames[range] ?? 'reserved';
  if (parsed instanceof ipaddr.IPv6 && !parsed.match(globalUnicast, globalUnicastBits)) {
    return 'outside global unicast';
  }
  return undefined;
}

/**
 * Parses the URL of another server (docs/design/webhooks.md#addresses): absolute, http or https,
 * with a host, without user and password, without white space and control characters. Throws
 * `invalid` for any other URL; the message does not repeat it.
 */
export function outboundUrl(text: string): URL {
  // A unix socket in the way of nginx would be the host `unix`.
  // The URL parser would correct backslashes, missing slashes and white space, and so give the URL
  // another meaning than a reader sees.
  if (
    !/^https?:\/\/[^/?#\\@]+(?:[/?#]|$)/i.test(text) ||
    /^https?:\/\/unix:(?!\d)/i.test(text) ||
    /[^\x21-\x5b\x5d-\x7e\u{a1}-\u{10ffff}]/u.test(text)
  ) {
    throw notOutbound();
  }
  if (!URL.canParse(text)) throw notOutbound();
  return new URL(text);
}

function notOutbound(): Failure {
  return new Failure('invalid', 'Write a URL with http:// or https:// and a host, without a user.');
}
