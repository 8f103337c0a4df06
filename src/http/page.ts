import { createHash } from 'node:crypto';
import { escapeHtml } from './html.ts';

/** A representation held in memory, with its strong validator (RFC 9110 §8.8.3). */
export interface PublicFile {
  readonly contentType: string;
  readonly bytes: Buffer;
  readonly etag: string;
}

/** What the placeholders of a page stand for, as plain text: the page gets them escaped. */
export interface PageValues {
  /** Prefix before `/svc1`; empty, or a path without a final slash. */
  readonly base: string;
  /** The Content-Security-Policy nonce of this one answer; empty where there is no such policy. */
  readonly nonce: string;
}

/**
 * The built-in generic page (docs/design/rendering.md#generic-pages) for one base and nonce;
 * `template` is page.html's text.
 */
export function genericPage(template: string, { base, nonce }: PageValues): PublicFile {
  // Replacing through a function keeps `$` in a value from being read as a pattern.
  const text = template
    .replaceAll('{{base}}', () => escapeHtml(base))
    .replaceAll('{{nonce}}', () => escapeHtml(nonce));
  return publicFile('text/html; charset=utf-8', Buffer.from(text));
}

/** A file with the validator of its bytes. */
export function publicFile(contentType: string, bytes: Buffer): PublicFile {
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`;
  return { contentType, bytes, etag };
}
