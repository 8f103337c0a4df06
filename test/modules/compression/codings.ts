import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import type { Coding } from '../../../src/core/http/representation/negotiation.ts';
import { type Seen, ask, eventually } from '../files/disk-rig.ts';

/** Decodes content, by the value of Content-Encoding. */
export function decoded(bytes: Buffer, contentEncoding: string | undefined): Buffer {
  switch (contentEncoding) {
    case undefined:
      return bytes;
    case 'zstd':
      return zstdDecompressSync(bytes);
    case 'br':
      return brotliDecompressSync(bytes);
    case 'gzip':
      return gunzipSync(bytes);
    default:
      throw new TypeError(`nobody asked for ${contentEncoding}`);
  }
}

/** Asks for a target in a coding until it is answered in it. */
export function askUntilCoded(url: string, target: string, coding: Coding): Promise<Seen> {
  return eventually(
    () => ask(url, target, { headers: { 'accept-encoding': coding } }),
    ({ fields }) => fields['content-encoding'] === coding,
  );
}

/** Text that compresses to about three quarters, another one for each seed. */
export function texts(length: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(length);
  let state = seed;
  for (let at = 0; at < length; at += 1) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    bytes[at] = 0x20 + ((state >> 16) & 0x3f);
  }
  return bytes;
}
