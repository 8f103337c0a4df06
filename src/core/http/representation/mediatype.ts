import { tokenSource, trimOws, unquote, valueSource } from '../syntax.ts';

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

/** The type of newline-delimited JSON. */
export const ndjsonType = 'application/x-ndjson';

/** A media type (RFC 9110 §8.3.1). */
export interface MediaType {
  /** `type/subtype`, lower case. */
  readonly type: string;
  /**
   * Values by lower-case name, without the quotes of quoted-strings; if a name occurs twice, the
   * first value.
   */
  readonly parameters: ReadonlyMap<string, string>;
}

const typePattern = new RegExp(`${tokenSource}/${tokenSource}`, 'y');
const parameterPattern = new RegExp(
  `[ \\t]*;[ \\t]*(?:(${tokenSource})=(${valueSource})|(?=[ \\t;]|$))`,
  'y',
);
const noParameters: ReadonlyMap<string, string> = new Map();

/**
 * Parses a media type such as `text/html; charset=utf-8` (RFC 9110 §8.3.1); returns undefined if
 * malformed.
 */
export function parseMediaType(text: string): MediaType | undefined {
  const trimmed = trimOws(text);
  typePattern.lastIndex = 0;
  const type = typePattern.exec(trimmed)?.[0];
  if (type === undefined) return undefined;
  const parameters = parseParameters(trimmed, type.length);
  return parameters && { type: type.toLowerCase(), parameters };
}

const notAscii = /[\u0080-\uffff]/;

/**
 * Returns the Content-Type of a text sent as UTF-8. `charset=utf-8` replaces any other charset (RFC
 * 9110 §8.3.2); it is added to `text/…` with non-ASCII characters, so that clients do not guess.
 */
export function utf8Type(contentType: string, text: string): string {
  const { type, parameters } = parseMediaType(contentType) ?? {
    type: '',
    parameters: noParameters,
  };
  const charset = parameters.get('charset');
  if (charset === undefined) {
    return type.startsWith('text/') && notAscii.test(text)
      ? `${contentType}; charset=utf-8`
      : contentType;
  }
  if (/^utf-?8$/i.test(charset)) return contentType;
  const others = [...parameters].filter(([name]) => name !== 'charset');
  const rest = others.map(([name, value]) => `; ${name}=${quoted(value)}`).join('');
  return `${type}${rest}; charset=utf-8`;
}

/** Quotes a parameter value as a quoted-string (RFC 9110 §5.6.4). */
function quoted(value: string): string {
  return `"${value.replace(/["\\]/g, '\\$&')}"`;
}

/**
 * Parses repeated `;name=value` from a position to the end of a text (RFC 9110 §5.6.6); returns
 * undefined if malformed.
 */
export function parseParameters(
  text: string,
  from: number,
): ReadonlyMap<string, string> | undefined {
  if (from === text.length) return noParameters;
  const parameters = new Map<string, string>();
  for (let at = from; at < text.length; at = parameterPattern.lastIndex) {
    parameterPattern.lastIndex = at;
    const match = parameterPattern.exec(text);
    if (match === null) return undefined;
    const name = match[1]?.toLowerCase();
    if (name !== undefined && match[2] !== undefined && !parameters.has(name)) {
      parameters.set(name, unquote(match[2]));
    }
  }
  return parameters;
}

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
