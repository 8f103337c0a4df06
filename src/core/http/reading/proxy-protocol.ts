import ipaddr from 'ipaddr.js';
import { parseAddress } from '../../values/network/cidr.ts';

/** The versions of the PROXY protocol of HAProxy: a line of text, or bytes. */
export const proxyVersions = ['v1', 'v2'] as const;

/** A version of the PROXY protocol. */
export type ProxyVersion = (typeof proxyVersions)[number];

/** The longest header of version 1, and the longest one of version 2 that is accepted. */
const lineBytesMax = 107;
const proxyHeaderBytesMax = 4_096;

const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
const fixedBytes = 16;
const tcp4 = 0x11;
const tcp6 = 0x21;
const addressBytes = { [tcp4]: 4, [tcp6]: 16 } as const;

/** What the bytes at the beginning of a connection are. */
type ProxyHeader =
  /** The header is not complete. */
  | 'incomplete'
  /** There is no valid header. */
  | 'malformed'
  | {
      /** The length of the header in bytes. */
      readonly length: number;
      /** The client; undefined if the proxy speaks for itself, or does not know. */
      readonly client: { readonly address: string; readonly port: number } | undefined;
    };

/**
 * Reads the header with which a proxy names the client of a connection (The PROXY protocol,
 * versions 1 and 2, HAProxy 3.2, §2). It ignores the extensions of version 2 (TLV).
 */
export function readProxyHeader(bytes: Buffer): ProxyHeader {
  const seen = Math.min(bytes.length, signature.length);
  if (bytes.subarray(0, seen).equals(signature.subarray(0, seen))) return readBytes(bytes);
  const begin = 'PROXY '.slice(0, bytes.length);
  return bytes.toString('latin1', 0, begin.length) === begin ? readLine(bytes) : 'malformed';
}

const line = /^PROXY (?:UNKNOWN(?: [^\r\n]*)?|TCP([46]) (\S+) (\S+) (\d{1,5}) (\d{1,5}))\r\n$/;

function readLine(bytes: Buffer): ProxyHeader {
  const end = bytes.indexOf('\r\n');
  if (end === -1) return bytes.length < lineBytesMax ? 'incomplete' : 'malformed';
  const length = end + 2;
  if (length > lineBytesMax) return 'malformed';
  const match = line.exec(bytes.toString('latin1', 0, length));
  if (match === null) return 'malformed';
  const [, family, address = '', , port = ''] = match;
  if (family === undefined) return { length, client: undefined };
  const isRight = address.includes(':') === (family === '6');
  const parsed = isRight ? parseAddress(address) : undefined;
  if (parsed === undefined || Number(port) > 65_535) return 'malformed';
  return { length, client: { address: parsed.toString(), port: Number(port) } };
}

function readBytes(bytes: Buffer): ProxyHeader {
  if (bytes.length < fixedBytes) return 'incomplete';
  const command = bytes[12] ?? 0;
  const family = bytes[13] ?? 0;
  const length = fixedBytes + bytes.readUInt16BE(14);
  if (command >> 4 !== 2 || (command & 15) > 1 || length > proxyHeaderBytesMax) return 'malformed';
  if (bytes.length < length) return 'incomplete';
  // LOCAL: the proxy itself, for example a health check.
  if ((command & 15) === 0) return { length, client: undefined };
  if (family !== tcp4 && family !== tcp6) return { length, client: undefined };
  const size = addressBytes[family];
  if (length < fixedBytes + 2 * size + 4) return 'malformed';
  const source = [...bytes.subarray(fixedBytes, fixedBytes + size)];
  const address = parseAddress(ipaddr.fromByteArray(source).toString());
  if (address === undefined) return 'malformed';
  const port = bytes.readUInt16BE(fixedBytes + 2 * size);
  return { length, client: { address: address.toString(), port } };
}

/**
 * Makes the header that names a client; for an unknown address, one that says so. Waymark does not
 * know the port of the client, and its own address: they are 0.
 */
export function proxyHeader(version: ProxyVersion, clientAddress: string): Buffer {
  const [plain = ''] = clientAddress.split('%', 1);
  const client = parseAddress(plain);
  const isV4 = client?.kind() === 'ipv4';
  if (version === 'v1') {
    if (client === undefined) return Buffer.from('PROXY UNKNOWN\r\n');
    const server = isV4 ? '0.0.0.0' : '::';
    return Buffer.from(`PROXY TCP${isV4 ? 4 : 6} ${client.toString()} ${server} 0 0\r\n`);
  }
  if (client === undefined) return Buffer.concat([signature, Buffer.from([0x20, 0, 0, 0])]);
  const family = isV4 ? tcp4 : tcp6;
  const size = addressBytes[family];
  const head = Buffer.from([0x21, family, 0, 2 * size + 4]);
  const source = Buffer.from(client.toByteArray());
  return Buffer.concat([signature, head, source, Buffer.alloc(size + 4)]);
}
