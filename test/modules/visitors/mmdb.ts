import ipaddr from 'ipaddr.js';

/** The content of a record in a test database. */
export type MmdbValue =
  | string
  | number
  | readonly MmdbValue[]
  | { readonly [name: string]: MmdbValue };

interface Node {
  zero: Node | MmdbRecord | undefined;
  one: Node | MmdbRecord | undefined;
}

class MmdbRecord {
  readonly value: MmdbValue;
  constructor(value: MmdbValue) {
    this.value = value;
  }
}

/**
 * A database in MaxMind's format (MMDB 2.0) with a record for each network; by default for IPv6,
 * with IPv4 networks below ::/96.
 */
export function mmdb(
  networks: Readonly<Record<string, MmdbValue>>,
  { ipVersion = 6 }: { readonly ipVersion?: 4 | 6 } = {},
): Buffer {
  const root = newNode();
  for (const [network, value] of Object.entries(networks)) {
    insert(root, bitsOf(network, ipVersion), new MmdbRecord(value));
  }
  const nodes: Node[] = [];
  collect(root, nodes);
  const data: Buffer[] = [];
  let dataBytes = 0;
  const tree = Buffer.alloc(nodes.length * 6);
  const pointerTo = (child: Node | MmdbRecord | undefined): number => {
    if (child === undefined) return nodes.length;
    if (!(child instanceof MmdbRecord)) return nodes.indexOf(child);
    const bytes = encode(child.value);
    const at = nodes.length + 16 + dataBytes;
    data.push(bytes);
    dataBytes += bytes.length;
    return at;
  };
  nodes.forEach(({ zero, one }, at) => {
    tree.writeUIntBE(pointerTo(zero), at * 6, 3);
    tree.writeUIntBE(pointerTo(one), at * 6 + 3, 3);
  });
  const metadata = Buffer.concat([
    control(7, 9),
    ...pair('node_count', unsigned(6, nodes.length)),
    ...pair('record_size', unsigned(5, 24)),
    ...pair('ip_version', unsigned(5, ipVersion)),
    ...pair('binary_format_major_version', unsigned(5, 2)),
    ...pair('binary_format_minor_version', unsigned(5, 0)),
    ...pair('build_epoch', unsigned(6, 1_700_000_000)),
    ...pair('database_type', encode('Test-Country')),
    ...pair('languages', encode(['en'])),
    ...pair('description', encode({ en: 'A test' })),
  ]);
  const marker = Buffer.from('abcdef4d61784d696e642e636f6d', 'hex');
  return Buffer.concat([tree, Buffer.alloc(16), ...data, marker, metadata]);
}

function newNode(): Node {
  return { zero: undefined, one: undefined };
}

function bitsOf(network: string, ipVersion: 4 | 6): string {
  const [address, length] = ipaddr.parseCIDR(network);
  const bits = address
    .toByteArray()
    .map((byte) => byte.toString(2).padStart(8, '0'))
    .join('');
  const isLow = address.kind() === 'ipv4' && ipVersion === 6;
  return (isLow ? '0'.repeat(96) : '') + bits.slice(0, length);
}

function insert(root: Node, bits: string, record: MmdbRecord): void {
  let node = root;
  for (let at = 0; at < bits.length; at += 1) {
    const side = bits[at] === '0' ? 'zero' : 'one';
    if (at === bits.length - 1) {
      node[side] = record;
      return;
    }
    const next = node[side];
    if (next instanceof MmdbRecord) throw new Error('the networks of a test do not overlap');
    node = node[side] = next ?? newNode();
  }
}

function collect(node: Node, nodes: Node[]): void {
  nodes.push(node);
  for (const child of [node.zero, node.one]) {
    if (child !== undefined && !(child instanceof MmdbRecord)) collect(child, nodes);
  }
}

function encode(value: MmdbValue): Buffer {
  if (typeof value === 'string') {
    const bytes = Buffer.from(value);
    return Buffer.concat([control(2, bytes.length), bytes]);
  }
  if (typeof value === 'number') return unsigned(6, value);
  if (Array.isArray(value)) {
    const items = value as readonly MmdbValue[];
    return Buffer.concat([control(11, items.length), ...items.map(encode)]);
  }
  const entries = Object.entries(value as Readonly<Record<string, MmdbValue>>);
  const pairs = entries.flatMap(([name, one]) => pair(name, encode(one)));
  return Buffer.concat([control(7, entries.length), ...pairs]);
}

function pair(name: string, value: Buffer): readonly Buffer[] {
  return [encode(name), value];
}

function unsigned(type: 5 | 6, value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  const short = type === 5 ? bytes.subarray(2) : bytes;
  return Buffer.concat([control(type, short.length), short]);
}

/** A control byte (MMDB 2.0, Data Field Format); types above 7 take a second byte. */
function control(type: number, size: number): Buffer {
  return type > 7 ? Buffer.from([size, type - 7]) : Buffer.from([(type << 5) | size]);
}
