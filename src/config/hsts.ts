import { duration, type ValueParser } from './values.ts';

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
