import { parseNumbers } from '../../core/values/json/exact-number.ts';

/** An event as a delivery contains it. */
export interface WebhookEvent {
  readonly id: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly [name: string]: unknown;
}

/** A delivery that is not genuine or too old: answer it with 400, and do not use its content. */
export class WebhookError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'WebhookError';
  }
}

const toleranceSeconds = 300;

/**
 * Verifies a delivery (Standard Webhooks), and returns the JSON of its body: an event, or a batch.
 * `body` is the exact text or bytes that arrived, `secret` the hook's `whsec_…`; after a rotation,
 * the new and the old one. Rejects with a WebhookError.
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>,
  secret: string | readonly string[],
  nowMs = Date.now(),
): Promise<WebhookEvent> {
  const id = fieldOf(headers, 'webhook-id');
  const timestamp = fieldOf(headers, 'webhook-timestamp');
  const signatures = fieldOf(headers, 'webhook-signature').split(' ');
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookError('webhook-timestamp is not a time.');
  if (Math.abs(nowMs / 1000 - Number(timestamp)) > toleranceSeconds) {
    throw new WebhookError('The delivery is too old, or the clock of this machine is wrong.');
  }
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const head = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(head.length + bytes.length);
  signed.set(head);
  signed.set(bytes, head.length);
  for (const one of [secret].flat()) {
    const key = await keyOf(one);
    for (const signature of signatures) {
      if (!signature.startsWith('v1,')) continue;
      const given = fromBase64(signature.slice(3));
      // Takes the same time wherever the signatures differ.
      if (given !== undefined && (await crypto.subtle.verify('HMAC', key, given, signed))) {
        return parseNumbers(new TextDecoder().decode(bytes)) as WebhookEvent;
      }
    }
  }
  throw new WebhookError('No signature of the delivery is valid for this secret.');
}

function fieldOf(
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>,
  name: string,
): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  if (typeof value !== 'string' || value === '') throw new WebhookError(`${name} is missing.`);
  return value;
}

async function keyOf(secret: string): ReturnType<typeof crypto.subtle.importKey> {
  const bytes = fromBase64(secret.replace(/^whsec_/, ''));
  if (bytes === undefined) throw new WebhookError('The secret has to be whsec_ and base64.');
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, [
    'verify',
  ]);
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
