import { createHash } from 'node:crypto';
import type { FieldList, Reply } from '../reply.ts';
import type { ContentRequest } from '../request.ts';

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/**
 * The header fields of every answer that Waymark makes itself (stored and generic pages, files,
 * breadcrumbs, operations and failures); a 304 has them, too. To add a field to all pages, add its
 * name and value here. `https-redirect.ts` adds Strict-Transport-Security, which depends on TLS.
 */
export const pageFields: FieldList = [
  // Browsers follow Content-Type and do not sniff the content (Fetch §2.2.6).
  'X-Content-Type-Options',
  'nosniff',
];

/** The lower-case names of `pageFields`. */
export const pageFieldNames: ReadonlySet<string> = new Set(
  pageFields.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()),
);

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

/** Escapes text for HTML text and quoted attribute values. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}

/**
 * Makes a small self-contained page without scripts or subresources: a title in plain text, one
 * sentence and further paragraphs in HTML.
 */
export function plainPage(title: string, sentence: string, further = ''): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<style>
:root { --paper: #fbfbf9; --ink: #1d1f23; --soft: #5b6068; --link: #0a50a8 }
:root { color-scheme: light dark; font: 1.05rem/1.6 system-ui, sans-serif }
@media (prefers-color-scheme: dark) {
  :root { --paper: #131519; --ink: #e8e9ec; --soft: #a4a9b3; --link: #8fbcff }
}
body { margin: 0; background: var(--paper); color: var(--ink); overflow-wrap: anywhere }
main { max-width: 36rem; margin: 0 auto; padding: clamp(3rem, 16vh, 9rem) 1.5rem 3rem }
h1 { margin: 0; font-size: clamp(1.7rem, 5vw, 2.1rem); line-height: 1.2; letter-spacing: -.015em }
p { margin: .7rem 0 0 }
a { color: var(--link); text-underline-offset: .2em }
a:focus-visible { outline: 2px solid var(--link); outline-offset: 3px }
ul { margin: .7rem 0 0; padding-left: 1.2rem }
li { margin: .3rem 0 }
small { display: block; margin-top: 1.4rem; color: var(--soft); font-size: .875rem }
</style>
<main>
<h1>${escapeHtml(title)}</h1>
<p>${sentence}</p>${further}
</main>
</html>
`;
}

/** Replies with Waymark's own files from memory. */
export interface PublicFileReplies {
  /** The reply with a file. The fields and source of a file must be the same each time. */
  respond(
    file: PublicFile,
    described: { readonly fields: FieldList; readonly source: string },
    request: Pick<ContentRequest, 'method' | 'fields'>,
  ): Reply;
}
