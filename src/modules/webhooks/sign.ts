import { createHmac } from 'node:crypto';
import { eventLoop } from '../../core/fair/turns.ts';
import { bodySliceBytes } from './limits.ts';

/** The secret of a hook, as the server makes it. */
const secretBytes = 32;

/** The sizes that Standard Webhooks allows for a secret. */
const secretBytesMin = 24;
const secretBytesMax = 64;

/** The decoded bytes of a secret: the HMAC key. */
export type SigningKey = Buffer;

/** The input of the signatures of one attempt. */
export interface SignedMessage {
  /** The same at every attempt, so that a receiver can recognise duplicates. */
  readonly id: string;
  /** The time of this attempt, in milliseconds since 1970. */
  readonly nowMs: number;
  /** The exact bytes of the body. */
  readonly body: Uint8Array;
  /** Newest first; after a rotation the previous key signs too for a while. */
  readonly keys: readonly [SigningKey, ...SigningKey[]];
}

const prefix = 'whsec_';

/** Makes a secret: `whsec_` and 32 random bytes in base64 (docs/design/webhooks.md#deliveries). */
export function createSecret(randomBytes: (size: number) => Buffer): string {
  return prefix + randomBytes(secretBytes).toString('base64');
}

/**
 * The bytes of a secret in its written form, `whsec_` and 24 to 64 bytes in base64 (Standard
 * Webhooks, "Signature scheme"); undefined for any other text.
 */
export function parseSecret(text: string): SigningKey | undefined {
  if (!text.startsWith(prefix)) return undefined;
  const encoded = text.slice(prefix.length);
  const bytes = Buffer.from(encoded, 'base64');
  // Node ignores characters that are not base64.
  if (bytes.toString('base64') !== encoded) return undefined;
  return bytes.length >= secretBytesMin && bytes.length <= secretBytesMax ? bytes : undefined;
}

/**
 * The header fields that authenticate a message (docs/design/webhooks.md#deliveries), as a flat
 * list of names and values: the three of Standard Webhooks, with a signature for each key, and
 * X-Service-HMAC, which holds the signature of the newest key only.
 */
export async function signatureFields(message: SignedMessage): Promise<string[]> {
  const { id, nowMs, body, keys } = message;
  const timestamp = String(Math.floor(nowMs / 1000));
  const head = `${id}.${timestamp}.`;
  const signed = keys.map((key) => createHmac('sha256', key).update(head));
  const ofBody = createHmac('sha256', keys[0]);
  const turns = eventLoop.turns('webhooks');
  for (let at = 0; at < body.length; at += bodySliceBytes) {
    if (at > 0 && turns.isOver()) await turns.next();
    const slice = body.subarray(at, at + bodySliceBytes);
    for (const hmac of [...signed, ofBody]) hmac.update(slice);
  }
  return [
    'webhook-id',
    id,
    'webhook-timestamp',
    timestamp,
    'webhook-signature',
    signed.map((hmac) => `v1,${hmac.digest('base64')}`).join(' '),
    'X-Service-HMAC',
    ofBody.digest('hex'),
  ];
}
