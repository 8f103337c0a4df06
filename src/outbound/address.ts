import ipaddr from 'ipaddr.js';
import { cidrsContain, parseAddress, parseCidr, type Cidr } from '../model/cidr.ts';

/**
 * Allocated as global unicast (RFC 4291 §2.4); whatever lies outside embeds another address or is
 * reserved.
 */
const globalUnicast = ipaddr.IPv6.parse('2000::');
const globalUnicastBits = 3;

/** Where clouds answer for themselves, to whoever asks; the first is public by its prefix. */
const metadata = ['168.63.129.16', '169.254.169.254', '100.100.100.200', 'fd00:ec2::254'].flatMap(
  (text) => parseCidr(text) ?? [],
);

/**
 * The special ranges of ipaddr.js (IANA's registries, RFC 6890) in words; `unicast` is what may be
 * dialled.
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
 * Why an IP address may not be dialled, or undefined when it may: only globally reachable unicast
 * addresses are, and what `allowPrivate` names (docs/design/webhooks.md#addresses, Addresses). An
 * IPv4-mapped IPv6 address is the IPv4 address that it maps and is allowed with it; every other
 * form that embeds an IPv4 address (NAT64, 6to4, Teredo, IPv4-compatible) is refused whatever it
 * embeds, and has to be named as it is written.
 */
export function addressProblem(address: string, allowPrivate: readonly Cidr[]): string | undefined {
  const parsed = parseAddress(address);
  if (parsed === undefined) return `${JSON.stringify(address)} is not an IP address`;
  if (cidrsContain(allowPrivate, address)) return undefined;
  const kind = forbiddenKind(parsed, address);
  return kind && `${address} (${kind}) is not named by allow_private`;
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
