import { EventEmitter, once } from 'node:events';
import type { Socket } from 'node:net';
import type { TestContext } from 'node:test';
import type { TlsSite } from '../tls/tls-rig.ts';

/** A frame of HTTP/2 (RFC 9113 §4.1). */
export interface Frame {
  readonly type: keyof typeof frameTypes | 'unknown';
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export const frameTypes = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

export const flags = { END_STREAM: 1, ACK: 1, END_HEADERS: 4, PADDED: 8, PRIORITY: 32 } as const;

const errorCodes = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
];

/** Makes the bytes of a frame; `type` may be an unknown one. */
export function frame(
  type: keyof typeof frameTypes | number,
  flag: number,
  stream: number,
  payload: Buffer | string = '',
): Buffer {
  const content = Buffer.from(payload as string, 'latin1');
  const head = Buffer.alloc(9);
  head.writeUIntBE(content.length, 0, 3);
  head[3] = typeof type === 'number' ? type : frameTypes[type];
  head[4] = flag;
  head.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([head, content]);
}

/** Encodes a number in four bytes. */
export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Encodes the entries of a SETTINGS frame. */
export function settings(...entries: readonly (readonly [id: number, value: number])[]): Buffer {
  return Buffer.concat(
    entries.map(([id, value]) => Buffer.concat([Buffer.of(0, id), uint32(value)])),
  );
}

/** Encodes fields as literals without indexing or Huffman coding (RFC 7541 §6.2.2). */
export function fieldBlock(fields: readonly (readonly [name: string, value: string])[]): Buffer {
  return Buffer.concat(
    fields.flatMap(([name, value]) => [Buffer.of(0), literal(name), literal(value)]),
  );
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  const length: number[] = [];
  if (bytes.length < 127) length.push(bytes.length);
  else {
    length.push(127);
    let rest = bytes.length - 127;
    for (; rest >= 128; rest >>>= 7) length.push((rest & 127) | 128);
    length.push(rest);
  }
  return Buffer.concat([Buffer.from(length), bytes]);
}

/** A client that sends and reads raw frames. */
export interface RawClient {
  readonly frames: readonly Frame[];
  /** Whether the server has closed the connection. */
  readonly closed: () => boolean;
  send(...frames: readonly Buffer[]): void;
  /** Resolves when `isEnough` returns true, or the connection ends. */
  until(isEnough: () => boolean): Promise<void>;
  /** Stops reading until `resume`. */
  pause(): void;
  resume(): void;
}

/** The connection preface of a client (RFC 9113 §3.4). */
export const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

/** Connects by ALPN; sends the preface and SETTINGS, or other bytes instead. */
export async function connectRaw(
  t: TestContext,
  site: TlsSite,
  opening: string | Buffer = Buffer.concat([Buffer.from(preface), frame('SETTINGS', 0, 0)]),
): Promise<RawClient> {
  return clientOf(t, await site.shake({ servername: 'localhost', ALPNProtocols: ['h2'] }), opening);
}

/** Makes a raw client of an open connection. */
export function clientOf(t: TestContext, socket: Socket, opening: string | Buffer): RawClient {
  const frames: Frame[] = [];
  const news = new EventEmitter();
  let unread = Buffer.alloc(0);
  let isClosed = false;
  socket.on('data', (chunk: Buffer) => {
    unread = Buffer.concat([unread, chunk]);
    for (let next = readFrame(unread); next !== undefined; next = readFrame(unread)) {
      frames.push(next);
      unread = unread.subarray(9 + next.payload.length);
    }
    news.emit('news');
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isClosed = true;
    news.emit('news');
  });
  t.after(() => socket.destroy());
  socket.write(opening);
  return {
    frames,
    closed: () => isClosed,
    send: (...all) => socket.write(Buffer.concat(all)),
    async until(isEnough) {
      while (!isEnough() && !isClosed) await once(news, 'news');
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
  };
}

/** Reads the first whole frame of some bytes; undefined if there is none. */
export function readFrame(bytes: Buffer): Frame | undefined {
  if (bytes.length < 9) return undefined;
  const length = bytes.readUIntBE(0, 3);
  if (bytes.length < 9 + length) return undefined;
  const known = Object.entries(frameTypes).find(([, type]) => type === bytes[3]);
  return {
    type: (known?.[0] ?? 'unknown') as Frame['type'],
    flags: bytes[4] ?? 0,
    stream: bytes.readUInt32BE(5),
    payload: Buffer.from(bytes.subarray(9, 9 + length)),
  };
}

/** Describes a frame in the words of RFC 9113, with its error code or status. */
export function describeFrame({ type, payload }: Frame): string {
  if (type === 'GOAWAY') return `GOAWAY ${errorCodes[payload.readUInt32BE(4)] ?? ''}`;
  if (type === 'RST_STREAM') return `RST_STREAM ${errorCodes[payload.readUInt32BE(0)] ?? ''}`;
  if (type === 'HEADERS') return `answer ${statusOf(payload)}`;
  return type;
}

/** Decodes the status at the beginning of a field block (RFC 7541 Appendix A, B). */
function statusOf(block: Buffer): string {
  let at = 0;
  // A dynamic table size update may come first.
  while (((block[at] ?? 0) & 0xe0) === 0x20) at += 1;
  const first = block[at] ?? 0;
  const indexed = ['200', '204', '206', '304', '400', '404', '500'][first - 0x88];
  if (indexed !== undefined) return indexed;
  const length = (block[at + 1] ?? 0) & 0x7f;
  const isHuffman = ((block[at + 1] ?? 0) & 0x80) !== 0;
  const value = block.subarray(at + 2, at + 2 + length);
  return isHuffman ? huffmanDigits(value) : value.toString('latin1');
}

function huffmanDigits(bytes: Buffer): string {
  let bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  let digits = '';
  while (digits.length < 3) {
    const short = parseInt(bits.slice(0, 5), 2);
    const isShort = short < 3;
    digits += String(isShort ? short : parseInt(bits.slice(0, 6), 2) - 0x19 + 3);
    bits = bits.slice(isShort ? 5 : 6);
  }
  return digits;
}
