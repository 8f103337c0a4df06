/**
 * What is neither `text/…` nor says by its suffix that it is text, and not yet compressed itself.
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

/** Structured syntax suffixes (RFC 6839) of text. */
const suffix = /\+(?:json|xml|yaml|text)$/;

/**
 * Whether content of a media type (RFC 9110 §8.3.1) becomes smaller when it is compressed. An event
 * stream would, but what a coder holds back of it is an event that comes late.
 */
export function isCompressible(contentType: string | undefined): boolean {
  if (contentType === undefined) return false;
  const end = contentType.indexOf(';');
  const type = (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
  if (type.startsWith('text/')) return type !== 'text/event-stream';
  return types.has(type) || suffix.test(type);
}
