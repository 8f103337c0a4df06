import { isDeepStrictEqual } from 'node:util';
import { cidrsContain, parseAddress, type Cidr } from '../model/cidr.ts';
import { forwardedHopsMax } from './limits.ts';
import { parseAuthority, type Scheme } from '../model/authority.ts';
import type { Fields } from './request.ts';
import { splitList, tokenSource, unquote, valueSource } from './syntax.ts';

/** Where a request came from, as believed. */
interface Client {
  readonly address: string;
  readonly scheme: Scheme;
  /**
   * Canonical `host[:port]` that the client asked for; undefined where only the Host field tells.
   */
  readonly authority: string | undefined;
}

/**
 * What proxies say of the way of a request: hops from the client's on, and what the last of them
 * was asked for.
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
  // What some proxies write for the request that opens a websocket.
  ['ws', 'http'],
  ['wss', 'https'],
]);

/**
 * The client behind a connection: the peer itself, or what Forwarded (RFC 7239) or X-Forwarded-For,
 * -Proto and -Host say, if the peer is a trusted proxy and the two do not contradict each other.
 * The client is the right-most address that is no trusted proxy; what stands left of it is the
 * client's own claim and is not looked at. Scheme and authority are those of the last hop. Where
 * any of it is malformed, all of it is ignored. An address that the proxy hides (`unknown`,
 * `_name`) leaves the hop behind it.
 */
export function believedClient({
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
  const told = readForwarding(fields).map(
    (forwarding) => forwarding && believe(forwarding, peer, trustProxy),
  );
  const [client] = told;
  // A proxy that sets one kind of field may pass on what a client wrote into the other.
  const agreed = told.every((other) => isDeepStrictEqual(other, client));
  return (agreed ? client : undefined) ?? peer;
}

/**
 * Whether what a peer says of its clients is believed: it is in a trusted network, or at the other
 * end of a unix socket, which has no address and lets in whom its file's mode does.
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

/** What each kind of field says; undefined for one that is malformed. */
function readForwarding(fields: Fields): readonly (Forwarding | undefined)[] {
  const { forwarded } = fields;
  const others = {
    hops: splitList(fields['x-forwarded-for'] ?? '', ',')?.slice(-forwardedHopsMax) ?? [''],
    proto: lastOf(fields['x-forwarded-proto']),
    host: lastOf(fields['x-forwarded-host']),
  };
  if (forwarded === undefined) return [others];
  const said = parseForwarded(forwarded);
  if (said === undefined || fields['x-forwarded-for'] === undefined) return [said];
  return [merged(said, others), merged(others, said)];
}

/** Proto and host may stand in one kind of field alone. */
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
 * The pairs of one hop (RFC 7239 §4) by lower-case name; undefined when malformed or when a name
 * comes twice.
 */
function parseElement(element: string): ReadonlyMap<string, string> | undefined {
  const pairs = splitList(element, ';')?.map((pair) => pairPattern.exec(pair));
  const values = new Map<string, string>();
  for (const pair of pairs ?? [])
    values.set(pair?.[1]?.toLowerCase() ?? '', unquote(pair?.[2] ?? ''));
  return values.has('') || values.size !== pairs?.length ? undefined : values;
}

function believe(
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
 * The address of a node (RFC 7239 §6) without its port; an IPv6 address may also stand without its
 * brackets.
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

/** An IPv4 client of an IPv6 socket is known by its IPv4 address. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}
