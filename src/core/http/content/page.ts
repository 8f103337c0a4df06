import { createHash } from 'node:crypto';
import { escapeHtml } from './html.ts';

/** A file in memory with its strong entity tag (RFC 9110 §8.8.3). */
export interface PublicFile {
  readonly contentType: string;
  readonly bytes: Buffer;
  readonly etag: string;
}

/** The values of a page's placeholders, as plain text; `genericPage` escapes them. */
export interface PageValues {
  /** Prefix before `/svc1`; empty, or a path without a final slash. */
  readonly base: string;
  /** The Content-Security-Policy nonce of this answer; empty without such a policy. */
  readonly nonce: string;
}

/**
 * Makes the built-in generic page (docs/design/rendering.md#generic-pages) for one base and nonce
 * from the text of page.html.
 */
export function genericPage(template: string, { base, nonce }: PageValues): PublicFile {
  // A replacement function keeps `$` in a value literal.
  const text = template
    .replaceAll('{{base}}', () => escapeHtml(base))
    .replaceAll('{{nonce}}', () => escapeHtml(nonce));
  return publicFile('text/html; charset=utf-8', Buffer.from(text));
}

/** Makes a file with an entity tag from a hash of its bytes. */
export function publicFile(contentType: string, bytes: Buffer): PublicFile {
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`;
  return { contentType, bytes, etag };
}
