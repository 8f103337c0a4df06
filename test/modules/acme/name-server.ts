import { createHmac } from 'node:crypto';
import { createSocket, type Socket as Datagrams } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

/** The key that the server takes changes with. */
export const tsigSecret = Buffer.from('a secret of thirty-two bytes, yes');

/** The key in the form of tsig-keygen. */
export function tsigKeyText(
  secret = tsigSecret,
  name = 'waymark',
  algorithm = 'hmac-sha256',
): string {
  const base64 = secret.toString('base64');
  return `key "${name}" {\n\talgorithm ${algorithm};\n\tsecret "${base64}";\n};\n`;
}

/** An authoritative name server of one zone, which takes signed changes of TXT records. */
export interface TestNameServer {
  /** `host:port`. */
  readonly address: string;
  /** The TXT records now, as `name value`. */
  readonly records: Set<string>;
  /** Every change in order: `add` or `remove`, name and value. */
  readonly changes: string[];
  /** The code with which it answers a change; 0 makes it. */
  code: number;
  /** Whether it signs its answers with another key. */
  isForged: boolean;
  /** Whether it takes changes and says nothing. */
  isSilent: boolean;
  /** Further records, as in `records`. */
  more: () => readonly string[];
}

/** Starts the server for a zone on the loopback: questions by UDP, changes by TCP. */
export async function startNameServer(t: TestContext, zone: string): Promise<TestNameServer> {
  const tcp = createServer();
  tcp.listen(0, '127.0.0.1');
  await once(tcp, 'listening');
  const { port } = tcp.address() as AddressInfo;
  const udp: Datagrams = createSocket('udp4').bind(port, '127.0.0.1');
  await once(udp, 'listening');
  t.after(() => {
    tcp.close();
    udp.close();
  });
  const server: TestNameServer = {
    ...{ address: `127.0.0.1:${port}`, records: new Set<string>(), changes: [] },
    ...{ code: 0, isForged: false, isSilent: false, more: () => [] },
  };
  udp.on('message', (message, from) => {
    udp.send(answerTo(message, zone, server), from.port, from.address);
  });
  tcp.on('connection', (socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (bytes: Buffer) => {
      if (server.isSilent) return;
      const answer = changed(bytes.subarray(2), server);
      socket.end(Buffer.concat([u16(answer.length), answer]));
    });
  });
  return server;
}

/** The answer to a question: SOA of the zone, TXT records, or nothing. */
function answerTo(message: Buffer, zone: string, { records, more }: TestNameServer): Buffer {
  const { name, end } = nameAt(message, 12);
  const type = message.readUInt16BE(end);
  const question = message.subarray(12, end + 4);
  const isZone = type === 6 && name === zone;
  const texts =
    type === 16 ? [...records, ...more()].filter((one) => one.startsWith(`${name} `)) : [];
  const values = isZone
    ? [Buffer.concat([nameBytes('ns.test'), nameBytes('me.test'), Buffer.alloc(20)])]
    : texts.map((one) => textData(one.slice(name.length + 1)));
  const rows = values.map((data) =>
    Buffer.concat([u16(0xc00c), u16(type), u16(1), Buffer.alloc(4), u16(data.length), data]),
  );
  const head = [message.subarray(0, 2), u16(0x8400), u16(1), u16(rows.length), u16(0), u16(0)];
  return Buffer.concat([...head, question, ...rows]);
}

/** Makes a change if its signature is right; the answer is signed. */
function changed(message: Buffer, server: TestNameServer): Buffer {
  const zone = nameAt(message, 12);
  const record = nameAt(message, zone.end + 4);
  const kind = message.readUInt16BE(record.end + 2);
  const length = message.readUInt16BE(record.end + 8);
  const data = message.subarray(record.end + 10, record.end + 10 + length);
  const signed = message.subarray(0, record.end + 10 + length);
  const key = nameAt(message, signed.length);
  const algorithm = nameAt(message, key.end + 10);
  const time = message.subarray(algorithm.end, algorithm.end + 8);
  const mac = message.subarray(algorithm.end + 10, algorithm.end + 42);
  const before = Buffer.from(signed);
  before.writeUInt16BE(0, 10);
  const isRight = macOf(tsigSecret, [before, time]).equals(mac);
  const error = key.name === 'waymark' ? (isRight ? 0 : 16) : 17;
  const code = error === 0 ? server.code : 9;
  if (code === 0) {
    const value = data.subarray(1).toString();
    const row = `${record.name} ${value}`;
    server.changes.push(`${kind === 1 ? 'add' : 'remove'} ${row}`);
    if (kind === 1) server.records.add(row);
    else server.records.delete(row);
  }
  const head = Buffer.concat([
    ...[message.subarray(0, 2), u16(0xa800 | code), u16(1), u16(0), u16(0), u16(0)],
    message.subarray(12, zone.end + 4),
  ]);
  const secret = server.isForged ? Buffer.from('another secret') : tsigSecret;
  const answerMac =
    error === 0 ? macOf(secret, [u16(mac.length), mac, head, time]) : Buffer.alloc(0);
  const signature = Buffer.concat([
    ...[nameBytes('hmac-sha256'), time, u16(answerMac.length), answerMac],
    ...[message.subarray(0, 2), u16(error), u16(0)],
  ]);
  const answer = Buffer.concat([
    ...[head, nameBytes(key.name), u16(250), u16(255), Buffer.alloc(4)],
    ...[u16(signature.length), signature],
  ]);
  answer.writeUInt16BE(1, 10);
  return answer;
}

/** The MAC over parts and the variables of the key (RFC 8945 §4.3.3); the last part is the time. */
function macOf(secret: Buffer, parts: readonly Buffer[]): Buffer {
  const time = parts.at(-1) ?? Buffer.alloc(0);
  return createHmac('sha256', secret)
    .update(Buffer.concat(parts.slice(0, -1)))
    .update(Buffer.concat([nameBytes('waymark'), u16(255), Buffer.alloc(4)]))
    .update(Buffer.concat([nameBytes('hmac-sha256'), time, Buffer.alloc(4)]))
    .digest();
}

function nameAt(message: Buffer, start: number): { readonly name: string; readonly end: number } {
  const labels: string[] = [];
  let at = start;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length).toLowerCase());
    at += 1 + length;
  }
  return { name: labels.join('.'), end: at + 1 };
}

function nameBytes(name: string): Buffer {
  const labels = name
    .split('.')
    .map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`));
  return Buffer.concat([...labels, Buffer.of(0)]);
}

function textData(text: string): Buffer {
  return Buffer.concat([Buffer.of(text.length), Buffer.from(text)]);
}

function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}
