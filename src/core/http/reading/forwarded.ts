import { isDeepStrictEqual } from 'node:util';
import { Failure } from '../../values/failure.ts';
import { type Scheme, parseAuthority } from '../../values/network/authority.ts';
import { type Cidr, cidrsContain, parseAddress } from '../../values/network/cidr.ts';
import {
  type ClientAddress,
  type Peer,
  clientAddress,
  unknownAddress,
} from '../../values/network/peer.ts';
import type { Fields } from '../request.ts';
import { splitList, tokenSource, unquote, valueSource } from '../syntax.ts';

/** Hops that the server reads of a Forwarded or X-Forwarded-For field: the last ones. */
const forwardedHopsMax = 32;

/**
 * Fields besides Forwarded and X-Forwarded-* in which proxies and CDNs name the address of the
 * client, and which applications and frameworks believe, by lower-case name.
 */
export const addressFields: ReadonlySet<string> = new Set(
  [
    `client-ip clientip client-address clientaddress http-client-ip x-client-ip x-clientip`,
    `true-client-ip x-true-client-ip cf-connecting-ip cf-connecting-ipv6 cf-pseudo-ipv4`,
    `fastly-client-ip fly-client-ip do-connecting-ip incap-client-ip x-sucuri-clientip`,
    `x-cluster-client-ip x-nf-client-connection-ip x-azure-clientip x-azure-socketip`,
    `x-appengine-user-ip x-appengine-remote-addr x-envoy-external-address cdn-src-ip`,
    `ali-cdn-real-ip cloudfront-viewer-address x-vercel-forwarded-for x-vercel-proxied-for`,
    `real-ip xxx-real-ip x-ip x-user-ip x-originating-ip x-wap-network-client-ip`,
    `remote-ip remote-addr remote-host x-remote-ip x-remote-addr x-remote-host pc-remote-addr`,
    `x-original-remote-addr x-original-forwarded-for x-originally-forwarded-for x-forwarded`,
    `forwarded-for forwarded-for-ip x-forward-for x-forwarder-for x-orig-client x-coming-from`,
  ].flatMap((names) => names.split(' ')),
);

/** The client of a request: its address, and the scheme and authority of its request. */
interface Client {
  readonly address: ClientAddress;
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
 * Returns the client of a request: the peer of its connection, or the client in Forwarded (RFC
 * 7239) or X-Forwarded-For, -Proto and -Host, if the peer is a trusted proxy. The client is the
 * right-most address that is not a trusted proxy; the client itself can invent all hops to the
 * left, so they are not read. Scheme and authority are those of the last hop. If a proxy hides the
 * address (`unknown`, `_name`), it is unknown. Throws `invalid` if a value is malformed, or if the
 * two kinds of field disagree: the client may have sent one of them, and would otherwise seem to be
 * the proxy.
 */
export function resolveClient(
  { peer, scheme }: { readonly peer: Pick<Peer, 'listener' | 'address'>; readonly scheme: Scheme },
  fields: Fields,
  trustProxy: readonly Cidr[],
): Client & { readonly isOfProxy: boolean } {
  const own = { address: peer.address, scheme, authority: undefined };
  const isOfProxy = isTrustedPeer(peer, trustProxy);
  if (!isOfProxy || !isForwarded(fields)) return { ...own, isOfProxy };
  const clients = readForwarding(fields).map(
    (forwarding) => forwarding && clientOf(forwarding, own, trustProxy),
  );
  const [client] = clients;
  if (client === undefined || clients.includes(undefined)) {
    throw new Failure(
      'invalid',
      'A field about the client of a proxy is malformed: Forwarded, or one of X-Forwarded-*.',
    );
  }
  if (!clients.every((other) => isDeepStrictEqual(other, client))) {
    throw new Failure(
      'invalid',
      'Forwarded and X-Forwarded-* disagree. The proxy has to set or remove each of them.',
    );
  }
  return { ...client, isOfProxy };
}

/**
 * Whether the server trusts the forwarding fields of a peer: its address is in a trusted network,
 * or it has connected to a unix socket.
 */
export function isTrustedPeer(
  { listener, address }: Pick<Peer, 'listener' | 'address'>,
  trustProxy: readonly Cidr[],
): boolean {
  return listener === 'unix' || cidrsContain(trustProxy, address);
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
    hops: valuesOf(fields['x-forwarded-for']).slice(-forwardedHopsMax),
    proto: valuesOf(fields['x-forwarded-proto']).at(-1),
    host: valuesOf(fields['x-forwarded-host']).at(-1),
  };
  if (forwarded === undefined) return [others];
  const standard = parseForwarded(forwarded);
  if (standard === undefined || fields['x-forwarded-for'] === undefined) return [standard];
  return [merged(standard, others), merged(others, standard)];
}

/**
 * The values of an X-Forwarded-* field, in which quotes have no meaning: one of a client must not
 * hide those of the proxy. One that is malformed for an empty list; none for no field.
 */
function valuesOf(list: string | undefined): readonly string[] {
  if (list === undefined) return [];
  const values = list.split(',').map((value) => value.trim());
  const present = values.filter((value) => value !== '');
  return present.length === 0 ? [''] : present;
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
 * Parses the pairs of one hop (RFC 7239 §4) by lower-case name; undefined if malformed or
 * empty, or if a name occurs twice.
 */
function parseElement(element: string): ReadonlyMap<string, string> | undefined {
  const pairs = splitList(element, ';')?.map((pair) => pairPattern.exec(pair));
  const values = new Map<string, string>();
  for (const pair of pairs ?? [])
    values.set(pair?.[1]?.toLowerCase() ?? '', unquote(pair?.[2] ?? ''));
  const isEmpty = values.size === 0;
  return isEmpty || values.has('') || values.size !== pairs?.length ? undefined : values;
}

function clientOf(
  { hops, proto, host }: Forwarding,
  peer: Client,
  trustProxy: readonly Cidr[],
): Client | undefined {
  const address = addressOf(hops, peer.address, trustProxy);
  const scheme = proto === undefined ? peer.scheme : schemes.get(proto.toLowerCase());
  if (address === undefined || scheme === undefined) return undefined;
  if (host === undefined) return { address, scheme, authority: undefined };
  const authority = parseAuthority(host, scheme);
  return authority === undefined ? undefined : { address, scheme, authority };
}

function addressOf(
  hops: readonly (string | undefined)[],
  peerAddress: ClientAddress,
  trustProxy: readonly Cidr[],
): ClientAddress | undefined {
  let address: ClientAddress | undefined = peerAddress;
  for (const hop of hops.toReversed()) {
    // The proxy says nothing about its client.
    if (hop === undefined) return address;
    address = parseNode(hop);
    if (address === undefined || !cidrsContain(trustProxy, address)) return address;
  }
  return address;
}

/**
 * Returns the address of a node (RFC 7239 §6) without its port, `unknown` for an obfuscated one,
 * undefined if malformed. An IPv6 address may lack its brackets.
 */
function parseNode(text: string): ClientAddress | undefined {
  const bare = parseAddress(text);
  if (bare !== undefined) return clientAddress(bare.toString());
  const match = nodePattern.exec(text);
  if (match === null) return undefined;
  const written = match[1] ?? match[2];
  if (written === undefined) return unknownAddress;
  const address = parseAddress(written);
  return address && clientAddress(address.toString());
}
