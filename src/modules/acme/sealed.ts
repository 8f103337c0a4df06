import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { SecretsKey } from '../../core/config/secrets-keys.ts';
import type { Refused } from '../../core/config/values.ts';

const algorithm = 'aes-256-gcm';
const [nonceBytes, tagBytes] = [12, 16];

/**
 * Encrypts a text (AES-256-GCM), with its name as additional data, so that it cannot be used under
 * another name. The result is `<id of the key>.<nonce, tag and ciphertext in base64url>`.
 */
export function seal(text: string, name: string, { id, bytes }: SecretsKey): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, bytes, nonce, { authTagLength: tagBytes });
  cipher.setAAD(Buffer.from(name));
  const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  const whole = Buffer.concat([nonce, cipher.getAuthTag(), encrypted]);
  return `${id}.${whole.toString('base64url')}`;
}

/** Decrypts what `seal` has made; says as the end of a sentence why that is not possible. */
export function unseal(
  sealed: string,
  name: string,
  keys: readonly SecretsKey[],
): { readonly text: string } | Refused {
  const id = keyIdOf(sealed);
  const key = keys.find((one) => one.id === id);
  if (key === undefined) return { refused: `is encrypted with the key ${id}` };
  const whole = Buffer.from(sealed.slice(id.length + 1), 'base64url');
  try {
    const nonce = whole.subarray(0, nonceBytes);
    const decipher = createDecipheriv(algorithm, key.bytes, nonce, { authTagLength: tagBytes });
    decipher.setAAD(Buffer.from(name));
    decipher.setAuthTag(whole.subarray(nonceBytes, nonceBytes + tagBytes));
    const encrypted = whole.subarray(nonceBytes + tagBytes);
    const text = Buffer.concat([decipher.update(encrypted), decipher.final()]).toString();
    return { text };
  } catch {
    return { refused: `was changed after it was encrypted with the key ${id}` };
  }
}

/** The id of the key with which a text is encrypted. */
export function keyIdOf(sealed: string): string {
  return sealed.slice(0, Math.max(0, sealed.indexOf('.')));
}
