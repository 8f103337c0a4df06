import { parseHttpDate } from '../http/date.ts';
import { duration, type ValueParser } from './values.ts';

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const fieldContent = /^[\t\x20-\x7e]*$/;

/** Fields that the server sets for the connection, the framing of the message, or the file. */
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

/** Whether the server sets an answer's field itself; by its lower-case name. */
export function isServersOwn(name: string): boolean {
  return serversOwn.has(name);
}

/** The name of a header field (RFC 9110 §5.1), in lower case. */
export const fieldName: ValueParser<string> = (text) =>
  token.test(text)
    ? { value: text.toLowerCase() }
    : { refused: 'write the name of a header field, such as `X-User`' };

/** The name of a cookie (RFC 6265 §4.1.1). */
export const cookieName: ValueParser<string> = (value) =>
  token.test(value) ? { value } : { refused: 'write the name of a cookie, such as `jwt`' };

/** The name of any header field, in lower case. */
export const fieldToken: ValueParser<string> = (value) =>
  token.test(value)
    ? { value: value.toLowerCase() }
    : { refused: 'it is not a valid name of a header field' };

/** The name of a field of answers that the server does not set itself; unchanged. */
export const answerFieldName: ValueParser<string> = (value) => {
  const name = fieldToken(value);
  if ('refused' in name) return name;
  return isServersOwn(name.value) ? { refused: 'the server sets that field itself' } : { value };
};

/** The name of a field that a mount may add to its answers; unchanged. */
export const addedFieldName: ValueParser<string> = (value) => {
  const parsed = fieldToken(value);
  if ('refused' in parsed) return parsed;
  const name = parsed.value;
  if (isServersOwn(name)) return { refused: 'the server sets that field itself' };
  if (name === 'cache-control') return { refused: 'use the key `cache_control` of the mount' };
  return { value };
};

/**
 * The value of a header field (RFC 9110 §5.5), trimmed. Only ASCII is allowed: clients decode other
 * bytes in different ways.
 */
export const fieldValue: ValueParser<string> = (text) =>
  fieldContent.test(text)
    ? { value: text.trim() }
    : { refused: 'a header field may contain ASCII only' };

const daySeconds = 86_400;
const maxAge = duration('0s', '3650d');

/**
 * Says why a value cannot be one of Expires, which is a date: caches treat any other text as a date
 * in the past (RFC 9111 §5.3). Undefined for a date, for a digit such as `0`, which people write to
 * say just that, and for variables.
 */
export function expiresRefusal(text: string): string | undefined {
  const isMeant = text === '' || text.includes('${') || /^-?\d$/.test(text);
  if (isMeant || parseHttpDate(text, Date.now()) !== undefined) return undefined;
  const age = maxAge(text);
  const seconds = 'value' in age ? Math.floor(age.value / 1_000) : 30 * daySeconds;
  const cure = `write \`Cache-Control = max-age=${seconds}\``;
  return `it is a date, and other texts are in the past: ${cure}`;
}

/** The shortest time that the preload lists of browsers accept (hstspreload.org). */
const preloadSecondsMin = 365 * daySeconds;

/**
 * The value of Strict-Transport-Security (RFC 6797 §6.1) for a time such as `365d`, which
 * `subdomains` or `subdomains preload` may follow. `0s` makes browsers forget an earlier value.
 */
export const hsts: ValueParser<string> = (text) => {
  const [time = '', ...words] = text.split(/[\s,;]+/).filter((word) => word !== '');
  const parsed = maxAge(time);
  if ('refused' in parsed) return parsed;
  const seconds = Math.floor(parsed.value / 1_000);
  const [includesSubdomains, preload] = ['subdomains', 'preload'].map((word) =>
    words.includes(word),
  );
  if (words.length !== Number(includesSubdomains) + Number(preload)) {
    return { refused: 'write a time such as `365d`, or `365d subdomains`' };
  }
  if (preload && !(includesSubdomains && seconds >= preloadSecondsMin)) {
    return { refused: '`preload` needs `subdomains` and 365d or more' };
  }
  const parts = [
    `max-age=${seconds}`,
    includesSubdomains && 'includeSubDomains',
    preload && 'preload',
  ];
  return { value: parts.filter((part) => part !== false).join('; ') };
};

/** The text in the ini file for such a value. */
export function hstsText(value: string): string {
  const seconds = Number(/^max-age=(\d+)/.exec(value)?.[1]);
  const isDays = seconds > 0 && seconds % daySeconds === 0;
  const time = isDays ? `${seconds / daySeconds}d` : `${seconds}s`;
  const subdomains = value.includes('includeSubDomains') ? ' subdomains' : '';
  return `${time}${subdomains}${value.includes('preload') ? ' preload' : ''}`;
}
