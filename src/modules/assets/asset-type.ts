import type { FieldList } from '../../core/http/reply.ts';
import { mediaType } from '../files/media-type.ts';

/**
 * The signatures of images that browsers show (MIME Sniffing §6.1), with those of AVIF: the bytes
 * at a place, and for some types those at the start, too.
 */
const signatures: readonly {
  readonly type: string;
  readonly at: number;
  readonly bytes: string;
  readonly first?: string;
}[] = [
  { type: 'image/png', at: 0, bytes: '\x89PNG\r\n\x1a\n' },
  { type: 'image/jpeg', at: 0, bytes: '\xff\xd8\xff' },
  { type: 'image/gif', at: 0, bytes: 'GIF87a' },
  { type: 'image/gif', at: 0, bytes: 'GIF89a' },
  { type: 'image/webp', at: 8, bytes: 'WEBPVP', first: 'RIFF' },
  { type: 'image/avif', at: 4, bytes: 'ftypavif' },
  { type: 'image/avif', at: 4, bytes: 'ftypavis' },
  { type: 'image/bmp', at: 0, bytes: 'BM' },
  { type: 'image/x-icon', at: 0, bytes: '\0\0\x01\0' },
];

/** The images among these whose signature is too short to outweigh a name. */
const weak: readonly string[] = ['image/bmp', 'image/x-icon'];

/**
 * The media type of a file: of images by their first bytes, of everything else by the extension of
 * its name. A name that claims an image which the bytes are not makes no image of them.
 */
export function assetType(name: string, head: Buffer): string {
  const start = head.toString('latin1');
  const found = signatures.find(
    ({ at, bytes, first = '' }) => start.startsWith(bytes, at) && start.startsWith(first),
  )?.type;
  const named = mediaType(name);
  if (found !== undefined && (!weak.includes(found) || named.startsWith('image/'))) return found;
  const isClaim = named.startsWith('image/') && !named.startsWith('image/svg');
  return isClaim ? 'application/octet-stream' : named;
}

/** Documents that browsers run scripts of: HTML, SVG and other XML, PDF. */
const active = /^(?:text\/html|application\/pdf|(?:text|application)\/xml|[^;]*\+xml|text\/xsl)\b/i;
/** HTML in parts of a file: MHTML (RFC 2557), and documents that replace each other. */
const archive = /^(?:message\/rfc822|multipart\/[^;]*|application\/x-mimearchive)\b/i;

/**
 * The header fields that keep an uploaded document from running as a page of the site: it has an
 * opaque origin and no script (CSP 3, sandbox). HTML and XML are downloaded; an SVG can be shown.
 */
export function assetSafetyFields(contentType: string): FieldList {
  if (!active.test(contentType) && !archive.test(contentType)) return [];
  const isShown = /^(?:image\/svg|application\/pdf)/i.test(contentType);
  const policy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:";
  return [
    ...['Content-Security-Policy', policy],
    ...(isShown ? [] : ['Content-Disposition', 'attachment']),
  ];
}
