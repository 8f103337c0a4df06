import { ipv4Number, parseAddress, parseCidr } from './cidr.ts';

/**
 * An address that can be compared with `<`: a number of 32 bits for IPv4, and a text of eight
 * UTF-16 units, one for each group, for IPv6.
 */
export type ComparableAddress = number | string;

/** First and last address of a network. */
type Range<T extends ComparableAddress> = readonly [first: T, last: T];

/** A set of networks as sorted ranges of addresses, with binary search. */
export class Networks {
  /** The texts of the networks. */
  readonly texts: readonly string[];
  readonly #ipv4: readonly Range<number>[];
  readonly #ipv6: readonly Range<string>[];

  private constructor(texts: readonly string[], ranges: readonly Range<ComparableAddress>[]) {
    this.texts = texts;
    this.#ipv4 = joined(ranges.filter((range) => typeof range[0] === 'number') as Range<number>[]);
    this.#ipv6 = joined(ranges.filter((range) => typeof range[0] === 'string') as Range<string>[]);
  }

  /** Parses networks as parseCidr does; undefined if one of the texts is invalid. */
  static parse(texts: readonly string[]): Networks | undefined {
    const { networks, invalid } = Networks.parseValid(texts);
    return invalid.length === 0 ? networks : undefined;
  }

  /** As `parse`, without the invalid texts, whose indexes it returns. */
  static parseValid(texts: readonly string[]): {
    readonly networks: Networks;
    readonly invalid: readonly number[];
  } {
    const ranges: Range<ComparableAddress>[] = [];
    const invalid: number[] = [];
    texts.forEach((text, at) => {
      const range = parseRange(text);
      if (range === undefined) invalid.push(at);
      else ranges.push(range);
    });
    return { networks: new Networks(texts, ranges), invalid };
  }

  /** Whether one of the networks contains an address. */
  contains(address: ComparableAddress): boolean {
    return typeof address === 'number'
      ? isInside(this.#ipv4, address)
      : isInside(this.#ipv6, address);
  }
}

/** An address as parseAddress reads it; an IPv4-mapped IPv6 address becomes its IPv4 address. */
export function comparableAddress(text: string): ComparableAddress | undefined {
  const known = ipv4Number(text) ?? plainIpv6(text);
  if (known !== undefined) return known;
  const parsed = parseAddress(text);
  return parsed && fromBytes(parsed.toByteArray());
}

function parseRange(text: string): Range<ComparableAddress> | undefined {
  const slash = text.indexOf('/');
  const address = slash === -1 ? text : text.slice(0, slash);
  const number = ipv4Number(address) ?? plainIpv6(address);
  const bits = slash === -1 ? undefined : text.slice(slash + 1);
  if (number !== undefined && (bits === undefined || /^\d{1,3}$/.test(bits))) {
    const bitsMax = typeof number === 'number' ? ipv4Bits : ipv6Bits;
    const prefixBits = bits === undefined ? bitsMax : Number(bits);
    return prefixBits <= bitsMax ? rangeOf(number, prefixBits) : undefined;
  }
  // ipaddr.js parses rare notations; it takes about 20 times as long.
  const parsed = parseCidr(text);
  return parsed && rangeOf(fromBytes(parsed.network.toByteArray()), parsed.prefixBits);
}

const ipv4Bits = 32;
const ipv6Bits = 128;
const groupBits = 16;

function rangeOf(address: ComparableAddress, prefixBits: number): Range<ComparableAddress> {
  if (typeof address === 'number') {
    const size = 2 ** (ipv4Bits - prefixBits);
    const first = address - (address % size);
    return [first, first + size - 1];
  }
  let [first, last] = ['', ''];
  for (let at = 0; at < address.length; at += 1) {
    const hostBits = Math.min(groupBits, Math.max(0, (at + 1) * groupBits - prefixBits));
    const hostMask = 2 ** hostBits - 1;
    const group = address.charCodeAt(at);
    first += String.fromCharCode(group & ~hostMask);
    last += String.fromCharCode(group | hostMask);
  }
  return [first, last];
}

/** Sorts ranges and merges overlapping ones. */
function joined<T extends ComparableAddress>(ranges: readonly Range<T>[]): readonly Range<T>[] {
  const inOrder = ranges.toSorted(([one], [other]) => (one < other ? -1 : Number(one > other)));
  const disjoint: Range<T>[] = [];
  for (const [first, last] of inOrder) {
    const previous = disjoint.at(-1);
    if (previous === undefined || previous[1] < first) disjoint.push([first, last]);
    else if (previous[1] < last) disjoint[disjoint.length - 1] = [previous[0], last];
  }
  return disjoint;
}

function isInside<T extends ComparableAddress>(ranges: readonly Range<T>[], address: T): boolean {
  let [low, high] = [0, ranges.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const range = ranges[middle];
    if (range === undefined || range[0] > address) high = middle;
    else if (range[1] >= address) return true;
    else low = middle + 1;
  }
  return false;
}

/**
 * Parses an IPv6 address of hexadecimal groups (RFC 4291 §2.2); undefined for any other text, and
 * for an IPv4-mapped address.
 */
function plainIpv6(text: string): string | undefined {
  // The groups before and after `::`; without it, all groups are on the left.
  const gap = text.indexOf('::');
  const left =
    gap === -1 ? readGroups(text, 0) : gap === 0 ? '' : readGroups(text.slice(0, gap), 0);
  const right = gap === -1 || gap + 2 === text.length ? '' : readGroups(text, gap + 2);
  if (left === undefined || right === undefined) return undefined;
  const missing = groupsMax - left.length - right.length;
  if (gap === -1 ? missing !== 0 : missing < 1) return undefined;
  const address = left + zeros.slice(0, missing) + right;
  return address.startsWith(mappedPrefix) ? undefined : address;
}

const groupsMax = ipv6Bits / groupBits;
const zeros = '\0'.repeat(groupsMax);
const mappedPrefix = `${'\0'.repeat(5)}\uffff`;

/** Parses groups of at most four hexadecimal digits, separated by `:`, from an index on. */
function readGroups(text: string, from: number): string | undefined {
  let [groups, group, digits] = ['', 0, 0];
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === colon) {
      if (digits === 0) return undefined;
      groups += String.fromCharCode(group);
      [group, digits] = [0, 0];
      continue;
    }
    const digit = hexDigit(code);
    if (digit === undefined || digits === 4 || groups.length === groupsMax) return undefined;
    group = group * 16 + digit;
    digits += 1;
  }
  return digits === 0 ? undefined : groups + String.fromCharCode(group);
}

const colon = 0x3a;

function hexDigit(code: number): number | undefined {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lowerCase = code | 0x20;
  return lowerCase >= 0x61 && lowerCase <= 0x66 ? lowerCase - 0x61 + 10 : undefined;
}

function fromBytes(bytes: readonly number[]): ComparableAddress {
  const view = new DataView(Uint8Array.from(bytes).buffer);
  if (bytes.length === 4) return view.getUint32(0);
  return String.fromCharCode(...bytes.flatMap((_, at) => (at % 2 === 0 ? view.getUint16(at) : [])));
}

/** The certificate of a TLS client, as the handshake has checked it (RFC 8446 §4.4.2). */
export interface ClientCertificate {
  /** The subject as RFC 4514 writes it, the most specific part first: `CN=ann,O=Example`. */
  readonly subject: string;
  /** The issuer in the same form. */
  readonly issuer: string;
  /** Hexadecimal, upper case. */
  readonly serial: string;
  /** SHA-256 of the certificate, hexadecimal, lower case. */
  readonly fingerprint: string;
  /** The common names of the subject, then its names for DNS, mail and URIs (RFC 5280 §4.2.1.6). */
  readonly names: readonly string[];
  /** When it ends, in milliseconds since 1970. */
  readonly endMs: number;
}

/** What is known about the certificate of a client on a connection. */
export type ClientIdentity =
  /** The handshake did not ask for a certificate of the authorities of this host. */
  | { readonly state: 'not_asked' }
  /** The client has sent none. */
  | { readonly state: 'none' }
  /** A sentence says why it does not count. */
  | { readonly state: 'refused'; readonly says: string }
  | { readonly state: 'valid'; readonly certificate: ClientCertificate };
