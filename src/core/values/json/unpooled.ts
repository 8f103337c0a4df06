/**
 * Copies bytes out of Node's buffer pool, for keeping them: a small buffer of the pool keeps the
 * whole pool buffer in memory. Bytes with memory of their own are returned unchanged.
 */
export function unpooled(bytes: Buffer): Buffer {
  if (bytes.buffer.byteLength === bytes.length) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}
