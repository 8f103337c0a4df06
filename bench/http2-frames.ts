/** The types of frames that the load generators use (RFC 9113 §6), and flags of frames. */
export const types = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
} as const;
export const flags = { endStream: 1, endHeaders: 4, ack: 1 } as const;

/**
 * What a client begins a connection with: the preface, no server push, the largest windows of
 * streams and connection (RFC 9113 §3.4, §6.5.2, §6.9).
 */
export const beginning = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1'),
  frame(types.settings, 0, 0, Buffer.from('00020000000000047fffffff', 'hex')),
  frame(types.windowUpdate, 0, 0, Buffer.from('7fff0000', 'hex')),
]);

/** Makes a frame (RFC 9113 §4.1). */
export function frame(
  type: number,
  flag: number,
  stream: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flag;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Calls `take` with each whole frame of bytes; returns the rest. */
export function readFrames(
  bytes: Buffer,
  take: (type: number, flag: number, stream: number, payload: Buffer) => void,
): Buffer {
  let at = 0;
  while (bytes.length - at >= 9) {
    const length = bytes.readUIntBE(at, 3);
    if (bytes.length - at < 9 + length) break;
    const [type = 0, flag = 0] = [bytes[at + 3], bytes[at + 4]];
    take(type, flag, bytes.readUInt32BE(at + 5), bytes.subarray(at + 9, at + 9 + length));
    at += 9 + length;
  }
  return bytes.subarray(at);
}

/** A field as a literal (RFC 7541 §6.2): 0x40 if it is indexed from now on, 0 if not. */
export function literal(kind: 0x40 | 0, name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([kind]), text(name), text(value)]);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  const { length } = bytes;
  if (length < 127) return Buffer.concat([Buffer.from([length]), bytes]);
  const rest = length - 127;
  const size = rest < 128 ? [127, rest] : [127, (rest & 127) | 128, rest >> 7];
  return Buffer.concat([Buffer.from(size), bytes]);
}
