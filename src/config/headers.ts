import type { ValueParser } from './values.ts';

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const fieldContent = /^[\t\x20-\x7e]*$/;

/** What the server itself says of a connection, of a message's framing or of the file it sends. */
const serversOwn: ReadonlySet<string> = new Set([
  'accept-ranges',
  'connection',
  'content-encoding',
  'content-length',
  'content-range',
  'content-type',
  'date',
  'etag',
  'keep-alive',
  'last-modified',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** The name of a header field (RFC 9110 §5.1), in lower case. */
export const fieldName: ValueParser<string> = (text) =>
  token.test(text)
    ? { value: text.toLowerCase() }
    : { refused: 'write the name of a header field, such as `X-User`' };

/** The name of a cookie (RFC 6265 §4.1.1). */
export const cookieName: ValueParser<string> = (value) =>
  token.test(value) ? { value } : { refused: 'write the name of a cookie, such as `jwt`' };

/** The name of a field that a mount may add to its answers, as it is written. */
export const addedFieldName: ValueParser<string> = (value) => {
  if (!token.test(value)) return { refused: 'it is not the name of a header field' };
  const name = value.toLowerCase();
  if (serversOwn.has(name)) return { refused: 'the server sets that field itself' };
  if (name === 'cache-control') return { refused: 'write it as `cache_control` of the mount' };
  return { value };
};

/**
 * The value of a header field (RFC 9110 §5.5) without the white space around it; ASCII only, as
 * anything else would not arrive as it was meant.
 */
export const fieldValue: ValueParser<string> = (text) =>
  fieldContent.test(text)
    ? { value: text.trim() }
    : { refused: 'a header field holds ASCII text only' };
