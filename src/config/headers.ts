import { duration, type ValueParser } from './values.ts';

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

const maxAge = duration('0s', '3650d');
const daySeconds = 86_400;
/** What the lists that browsers bring along ask of a site (hstspreload.org). */
const preloadSecondsMin = 365 * daySeconds;

/**
 * How long browsers are to come back over https only, as the value of Strict-Transport-Security
 * (RFC 6797 §6.1): a time such as `365d`, then `subdomains`, or `subdomains preload`. `0s` takes
 * back what was said before.
 */
export const hsts: ValueParser<string> = (text) => {
  const [time = '', ...words] = text.split(/[\s,;]+/).filter((word) => word !== '');
  const parsed = maxAge(time);
  if ('refused' in parsed) return parsed;
  const seconds = Math.floor(parsed.value / 1_000);
  const [covers, preload] = ['subdomains', 'preload'].map((word) => words.includes(word));
  if (words.length !== Number(covers) + Number(preload)) {
    return { refused: 'write a time such as `365d`, and behind it `subdomains` or nothing' };
  }
  if (preload && !(covers && seconds >= preloadSecondsMin)) {
    return { refused: '`preload` needs `subdomains` beside it and 365d or more' };
  }
  const parts = [`max-age=${seconds}`, covers && 'includeSubDomains', preload && 'preload'];
  return { value: parts.filter((part) => part !== false).join('; ') };
};

/** The same as it stands in the ini file. */
export function hstsText(value: string): string {
  const seconds = Number(/^max-age=(\d+)/.exec(value)?.[1]);
  const isDays = seconds > 0 && seconds % daySeconds === 0;
  const time = isDays ? `${seconds / daySeconds}d` : `${seconds}s`;
  const covers = value.includes('includeSubDomains') ? ' subdomains' : '';
  return `${time}${covers}${value.includes('preload') ? ' preload' : ''}`;
}
