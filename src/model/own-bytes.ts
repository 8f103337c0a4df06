/**
 * Bytes that are to be kept, in memory of their own: Node cuts small buffers out of large ones, and
 * as long as one part is kept, so is all of it.
 */
export function ownBytes(bytes: Buffer): Buffer {
  if (bytes.buffer.byteLength === bytes.length) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}
