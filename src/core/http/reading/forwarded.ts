import { isDeepStrictEqual } from 'node:util';
import { cidrsContain, parseAddress, type Cidr } from '../../values/network/cidr.ts';
import { forwardedHopsMax } from '../limits.ts';
import { parseAuthority, type Scheme } from '../../values/network/authority.ts';
import type { Fields } from '../request.ts';
import { splitList, tokenSource, unquote, valueSource } from '../syntax.ts';

/** The address of a client, and the scheme and authority of its request. */
interface Client {
  readonly address: string;
  readonly scheme: Scheme;
  /**
   * The canonical `host[:port]` of a forwarding field; undefined if only the Host field names one.
   */
  readonly authority: string | undefined;
}

/**
 * The parsed forwarding fields: the hops from the client on, and scheme and host at the last proxy.
 */
interface Forwarding {
  readonly hops: readonly (string | undefined)[];
  readonly proto: string | undefined;
  readonly host: string | undefined;
}

const pairPattern = new RegExp(`^(${tokenSource})=(${valueSource})$`);
const nodePattern =
  /^(?:(\d+\.\d+\.\d+\.\d+)|\[([0-9a-f:.]+)\]|unknown|_[\w.-]+)(?::(?:\d{1,5}|_[\w.-]+))?$/i;

const schemes: ReadonlyMap<string, Scheme> = new Map([
  ['http', 'http'],
  ['https', 'https'],
  // Some proxies write these for the handshake of a websocket.
  ['ws', 'http'],
  ['wss', 'https'],
]);

/**
 * Returns the client of a connection: the peer itself, or the client in Forwarded (RFC 7239) or
 * X-Forwarded-For, -Proto and -Host, if the peer is a trusted proxy and the two kinds of field
 * agree. The client is the right-most address that is not a trusted proxy; the client itself can
 * invent all hops to the left, so they are not read. Scheme and authority are those of the last
 * hop. One malformed value makes the function ignore all of them. If a proxy hides an address
 * (`unknown`, `_name`), the client is the hop after it.
 */
export function resolveClient({
  fields,
  peerAddress,
  scheme,
  trustProxy,
}: {
  readonly fields: Fields;
  readonly peerAddress: string;
  readonly scheme: Scheme;
  readonly trustProxy: readonly Cidr[];
}): Client {
  const peer = { address: plainAddress(peerAddress), scheme, authority: undefined };
  if (!isForwarded(fields) || !isTrustedPeer(peerAddress, trustProxy)) return peer;
  const clients = readForwarding(fields).map(
    (forwarding) => forwarding && clientOf(forwarding, peer, trustProxy),
  );
  const [client] = clients;
  // A proxy that sets one kind of field may pass on the other kind from the client.
  const isAgreed = clients.every((other) => isDeepStrictEqual(other, client));
  return (isAgreed ? client : undefined) ?? peer;
}

/**
 * Whether the server trusts the forwarding fields of a peer: its address is in a trusted network,
 * or the connection is a unix socket, which has no address and whose file mode restricts its peers.
 */
export function isTrustedPeer(peerAddress: string, trustProxy: readonly Cidr[]): boolean {
  return peerAddress === '' || cidrsContain(trustProxy, plainAddress(peerAddress));
}

function isForwarded(fields: Fields): boolean {
  return (
    fields['x-forwarded-for'] !== undefined ||
    fields.forwarded !== undefined ||
    fields['x-forwarded-proto'] !== undefined ||
    fields['x-forwarded-host'] !== undefined
  );
}

/** Parses each kind of field; undefined for a malformed one. */
function readForwarding(fields: Fields): readonly (Forwarding | undefined)[] {
  const { forwarded } = fields;
  const others = {
    hops: splitList(fields['x-forwarded-for'] ?? '', ',')?.slice(-forwardedHopsMax) ?? [''],
    proto: lastOf(fields['x-forwarded-proto']),
    host: lastOf(fields['x-forwarded-host']),
  };
  if (forwarded === undefined) return [others];
  const standard = parseForwarded(forwarded);
  if (standard === undefined || fields['x-forwarded-for'] === undefined) return [standard];
  return [merged(standard, others), merged(others, standard)];
}

/** Adds proto and host of another kind of field: a proxy may send each in one kind only. */
function merged(one: Forwarding, other: Forwarding): Forwarding {
  return { ...one, proto: one.proto ?? other.proto, host: one.host ?? other.host };
}

function parseForwarded(value: string): Forwarding | undefined {
  const elements = splitList(value, ',')?.slice(-forwardedHopsMax).map(parseElement);
  const last = elements?.at(-1);
  if (elements === undefined || last === undefined || elements.includes(undefined)) {
    return undefined;
  }
  return {
    hops: elements.map((element) => element?.get('for')),
    proto: last.get('proto'),
    host: last.get('host'),
  };
}

/**
 * Parses the pairs of one hop (RFC 7239 §4) by lower-case name; undefined if malformed, or if a
 * name occurs twice.
 */
function parseElement(element: string): ReadonlyMap<string, string> | undefined {
  const pairs = splitList(element, ';')?.map((pair) => pairPattern.exec(pair));
  const values = new Map<string, string>();
  for (const pair of pairs ?? [])
    values.set(pair?.[1]?.toLowerCase() ?? '', unquote(pair?.[2] ?? ''));
  return values.has('') || values.size !== pairs?.length ? undefined : values;
}

function clientOf(
  { hops, proto, host }: Forwarding,
  peer: Client,
  trustProxy: readonly Cidr[],
): Client | undefined {
  const address = clientAddress(hops, peer.address, trustProxy);
  const scheme = proto === undefined ? peer.scheme : schemes.get(proto.toLowerCase());
  if (address === undefined || scheme === undefined) return undefined;
  if (host === undefined) return { address, scheme, authority: undefined };
  const authority = parseAuthority(host, scheme);
  return authority === undefined ? undefined : { address, scheme, authority };
}

function clientAddress(
  hops: readonly (string | undefined)[],
  peerAddress: string,
  trustProxy: readonly Cidr[],
): string | undefined {
  let address = peerAddress;
  for (const hop of hops.toReversed()) {
    if (hop === undefined) return address;
    const node = parseNode(hop);
    if (node === undefined) return undefined;
    if (node === 'hidden') return address;
    address = node;
    if (!cidrsContain(trustProxy, address)) return address;
  }
  return address;
}

/**
 * Returns the address of a node (RFC 7239 §6) without its port, `hidden` for an obfuscated one,
 * undefined if malformed. An IPv6 address may lack its brackets.
 */
function parseNode(text: string): string | undefined {
  const bare = parseAddress(text);
  if (bare !== undefined) return bare.toString();
  const match = nodePattern.exec(text);
  if (match === null) return undefined;
  const written = match[1] ?? match[2];
  return written === undefined ? 'hidden' : parseAddress(written)?.toString();
}

function lastOf(list: string | undefined): string | undefined {
  return list === undefined ? undefined : (splitList(list, ',')?.at(-1) ?? '');
}

/** Returns the IPv4 address of an IPv4-mapped IPv6 address, and any other address unchanged. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}
