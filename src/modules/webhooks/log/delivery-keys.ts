import type { QueueKey } from './deliveries.ts';

/** The highest number of attempts that is recorded for one message. */
const attemptsMax = 65_535;

/** The greatest n, and the greatest time in milliseconds, that keys have room for. */
const uint48Max = 2 ** 48 - 1;
const queueBytes = 4;
const uint48Bytes = 6;

/** The key of the n-th event of a hook. */
export function eventKey(queue: QueueKey, n: number): Buffer {
  const key = Buffer.allocUnsafe(queueBytes + uint48Bytes);
  key.writeUInt32BE(queue, 0);
  key.writeUIntBE(bounded(n), queueBytes, uint48Bytes);
  return key;
}

/** The n of a key that begins with a hook and an n. */
export function nOf(key: Uint8Array): number {
  return uint48At(key, queueBytes);
}

/** The hook that a key begins with. */
export function queueOf(key: Uint8Array): QueueKey {
  return new DataView(key.buffer, key.byteOffset).getUint32(0);
}

/** The key under which a message that waits is found by its time. */
export function dueKey(queue: QueueKey, dueMs: number, n: number): Buffer {
  const key = Buffer.allocUnsafe(queueBytes + 2 * uint48Bytes);
  key.writeUInt32BE(queue, 0);
  key.writeUIntBE(bounded(dueMs), queueBytes, uint48Bytes);
  key.writeUIntBE(bounded(n), queueBytes + uint48Bytes, uint48Bytes);
  return key;
}

/** Parses a dueKey. */
export function dueOf(key: Uint8Array): { readonly dueMs: number; readonly n: number } {
  return { dueMs: uint48At(key, queueBytes), n: uint48At(key, queueBytes + uint48Bytes) };
}

/** The key of an attempt of the message that begins with the n-th event. */
export function attemptKey(queue: QueueKey, n: number, attempt: number): Buffer {
  const key = Buffer.allocUnsafe(queueBytes + uint48Bytes + 2);
  key.writeUInt32BE(queue, 0);
  key.writeUIntBE(bounded(n), queueBytes, uint48Bytes);
  key.writeUInt16BE(Math.min(attempt, attemptsMax), queueBytes + uint48Bytes);
  return key;
}

/** The first and last key of a hook, in each of these databases. */
export function queueRange(queue: QueueKey): { readonly start: Buffer; readonly end: Buffer } {
  const start = Buffer.alloc(queueBytes);
  start.writeUInt32BE(queue);
  const end = Buffer.alloc(queueBytes + 2 * uint48Bytes + 1, 0xff);
  end.writeUInt32BE(queue);
  return { start, end };
}

function bounded(value: number): number {
  return Math.max(0, Math.min(uint48Max, Math.trunc(value)));
}

function uint48At(key: Uint8Array, at: number): number {
  const view = new DataView(key.buffer, key.byteOffset);
  return view.getUint16(at) * 2 ** 32 + view.getUint32(at + 2);
}
