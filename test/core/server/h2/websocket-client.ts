import { once } from 'node:events';
import type { ClientHttp2Stream } from 'node:http2';

/** The fields that ask for a websocket over HTTP/2 (RFC 8441 §5). */
export const websocketFields = {
  ':method': 'CONNECT',
  ':protocol': 'websocket',
  'sec-websocket-version': '13',
} as const;

/** A text frame with a mask of zeros (RFC 6455 §5.2), of less than 64 KiB. */
export function textFrame(text: string): Buffer {
  const bytes = Buffer.from(text);
  const { length } = bytes;
  const size = length < 126 ? [0x80 | length] : [0x80 | 126, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([0x81, ...size, 0, 0, 0, 0]), bytes]);
}

/** Reads the next frame of a server, which is of less than 64 KiB; resolves to its text. */
export async function nextText(stream: ClientHttp2Stream): Promise<string> {
  let bytes = Buffer.alloc(0);
  while (bytes.length < 4 || bytes.length < lengthOf(bytes)) {
    const [chunk] = (await once(stream, 'data')) as [Buffer];
    bytes = Buffer.concat([bytes, chunk]);
  }
  if (bytes[0] !== 0x81) throw new Error(`a frame that begins with ${bytes.toString('hex', 0, 4)}`);
  return bytes.subarray(lengthOf(bytes) - textBytes(bytes)).toString();
}

const textBytes = (bytes: Buffer): number =>
  bytes[1] === 126 ? bytes.readUInt16BE(2) : (bytes[1] ?? 0);
const lengthOf = (bytes: Buffer): number => textBytes(bytes) + (bytes[1] === 126 ? 4 : 2);
