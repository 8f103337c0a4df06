/**
 * Compressible types that are neither `text/…` nor have a suffix below, and are not compressed
 * already.
 */
const types: ReadonlySet<string> = new Set(
  (
    'application/javascript application/x-javascript application/ecmascript application/json ' +
    'application/jsonl application/x-ndjson application/json5 application/json-seq ' +
    'application/xml application/xml-dtd application/yaml application/x-yaml application/toml ' +
    'application/sql application/graphql application/rtf application/postscript ' +
    'application/x-sh application/x-tex application/x-www-form-urlencoded application/wasm ' +
    'application/x-tar application/vnd.ms-fontobject application/vnd.apple.mpegurl ' +
    'font/collection font/otf font/ttf image/bmp image/x-icon image/vnd.microsoft.icon ' +
    'model/obj model/stl'
  ).split(' '),
);

/** Structured syntax suffixes (RFC 6839) of text formats. */
const suffix = /\+(?:json|xml|yaml|text)$/;

/**
 * Whether compression makes content of a media type (RFC 9110 §8.3.1) smaller. False for an event
 * stream, because the buffering of an encoder delays events.
 */
export function isCompressible(contentType: string | undefined): boolean {
  if (contentType === undefined) return false;
  const end = contentType.indexOf(';');
  const type = (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
  if (type.startsWith('text/')) return type !== 'text/event-stream';
  return types.has(type) || suffix.test(type);
}
