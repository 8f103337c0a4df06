import { createHash } from 'node:crypto';
import { readText } from './files.ts';
import { certificateBytesMax } from './limits.ts';
import type { Refused } from './values.ts';

/** A key that encrypts the secrets that the machines of a cluster share, or that signs links. */
export interface SecretsKey {
  /** The first 8 hexadecimal digits of a hash of the key, which identify it. */
  readonly id: string;
  /** 32 bytes, for AES-256. */
  readonly bytes: Buffer;
}

/** How to make a key, as the end of a sentence. */
export const makeSecretsKey = 'make one with `openssl rand -base64 32 > cluster.key`';

/**
 * Reads the keys of `secrets_key_file`: one a line, 32 bytes in base64. The first one encrypts, all
 * decrypt.
 */
export async function readSecretsKeys(
  file: string,
): Promise<{ readonly keys: readonly [SecretsKey, ...SecretsKey[]] } | Refused> {
  const read = await readText(file, { bytesMax: certificateBytesMax });
  if ('refused' in read) {
    const advice = `copy it from another machine of the cluster, or ${makeSecretsKey}`;
    return { refused: `${read.refused}: ${advice}` };
  }
  return parseSecretsKeys(read.text, makeSecretsKey);
}

/** Reads the keys of a `link_key_file`: one a line, 32 bytes in base64. */
export async function readLinkKeys(
  file: string,
): Promise<Awaited<ReturnType<typeof readSecretsKeys>>> {
  const read = await readText(file, { bytesMax: certificateBytesMax });
  if ('refused' in read) return { refused: `${read.refused}: ${makeLinkKey}` };
  return parseSecretsKeys(read.text, makeLinkKey);
}

/** How to make a key that signs links, as the end of a sentence. */
export const makeLinkKey = 'make one with `openssl rand -base64 32 > links.key`';

/** Parses keys, one a line; `advice` says how to make one. */
export function parseSecretsKeys(
  text: string,
  advice: string,
): { readonly keys: readonly [SecretsKey, ...SecretsKey[]] } | Refused {
  const lines = text.split('\n').map((line) => line.trim());
  const keys: SecretsKey[] = [];
  for (const [at, line] of lines.entries()) {
    if (line === '') continue;
    const bytes = Buffer.from(line, 'base64');
    if (!/^[A-Za-z0-9+/]{43}=$/.test(line) || bytes.length !== 32) {
      const refused = `has no key in line ${at + 1}: it must be 32 bytes in base64`;
      return { refused: `${refused}; ${advice}` };
    }
    keys.push({ id: idOf(bytes), bytes });
  }
  const [first, ...others] = keys;
  if (first === undefined) return { refused: `is empty: ${advice}` };
  return { keys: [first, ...others] };
}

function idOf(bytes: Buffer): string {
  return createHash('sha256').update('waymark secrets key').update(bytes).digest('hex').slice(0, 8);
}
