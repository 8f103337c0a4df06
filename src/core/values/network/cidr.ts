import ipaddr from 'ipaddr.js';

/** A network such as `10.0.0.0/8` or `::1/128`, with the text that was parsed. */
export interface Cidr {
  readonly text: string;
  readonly network: ipaddr.IPv4 | ipaddr.IPv6;
  readonly prefixBits: number;
}

/** Parses `address/bits` or a single address; undefined for any other text. */
export function parseCidr(text: string): Cidr | undefined {
  if (!text.includes('/')) {
    const network = parseAddress(text);
    return network && { text, network, prefixBits: network.kind() === 'ipv4' ? 32 : 128 };
  }
  if (!/^[0-9a-f.:]+\/\d{1,3}$/i.test(text) || !ipaddr.isValidCIDR(text)) return undefined;
  const [network, prefixBits] = ipaddr.parseCIDR(text);
  return { text, network, prefixBits };
}

/** Whether an object is a parsed network. */
export function isCidr(value: object): value is Cidr {
  return (
    'network' in value &&
    (value.network instanceof ipaddr.IPv4 || value.network instanceof ipaddr.IPv6)
  );
}

/**
 * Whether one of the networks contains an address; an IPv4-mapped IPv6 address counts as its IPv4
 * address.
 */
export function cidrsContain(cidrs: readonly Cidr[], address: string): boolean {
  if (cidrs.length === 0) return false;
  const parsed = parseAddress(address);
  if (parsed === undefined) return false;
  return cidrs.some(
    ({ network, prefixBits }) =>
      network.kind() === parsed.kind() && parsed.match(network, prefixBits),
  );
}

/**
 * Parses an IP address in its standard form (RFC 4291 §2.2; IPv4 as four decimal numbers, no octal,
 * no short forms); an IPv4-mapped IPv6 address becomes its IPv4 address.
 */
export function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  if (text.includes(':')) {
    if (!ipaddr.IPv6.isValid(text)) return undefined;
    const address = ipaddr.IPv6.parse(withoutDots(text));
    return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
  }
  return ipaddr.IPv4.isValidFourPartDecimal(text) ? ipaddr.IPv4.parse(text) : undefined;
}

/** An IPv4 address as a number of 32 bits; undefined for any other text. */
export function ipv4Number(text: string): number | undefined {
  let [address, octet, digits, dots] = [0, 0, 0, 0];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x2e && digits > 0) {
      address = address * 256 + octet;
      [octet, digits, dots] = [0, 0, dots + 1];
      continue;
    }
    // Some programs read a number with a leading zero as octal.
    if (digits > 0 && octet === 0) return undefined;
    octet = octet * 10 + code - 0x30;
    digits += 1;
    if (code < 0x30 || code > 0x39 || octet > 255 || digits > 3) return undefined;
  }
  return dots === 3 && digits > 0 ? address * 256 + octet : undefined;
}

/** ipaddr.js reads `::a.b.c.d` as an IPv4-mapped address, but only `::ffff:a.b.c.d` is one. */
function withoutDots(address: string): string {
  return address.replace(/(?<=:)(\d+)\.(\d+)\.(\d+)\.(\d+)/, (_, ...octets: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = octets.slice(0, 4).map(Number);
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  });
}

/**
 * The network by which a client is counted: for an IPv6 address the first 64 bits, because a client
 * usually controls all addresses below them (RFC 6177); for IPv4, the address itself.
 */
export function addressNetwork(address: string): string {
  if (!address.includes(':')) return address;
  const parsed = parseAddress(address);
  if (parsed === undefined || parsed.kind() === 'ipv4') return parsed?.toString() ?? address;
  return parsed.toByteArray().slice(0, 8).join(':');
}
