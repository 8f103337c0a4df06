import { parseOrigin } from './authority.ts';

/** Labels behind the `*.` of an origin; no longer end of a host is looked up. */
const originLabelsMax = 10;

/**
 * An origin in canonical form, one for all subdomains of a host, such as `https://*.example.com`,
 * or `*` for every origin; undefined for any other text.
 */
export function parseOriginPattern(text: string): string | undefined {
  if (text === '*') return text;
  const [, scheme] = /^(https?:\/\/)\*\./i.exec(text) ?? [];
  if (scheme === undefined) return parseOrigin(text);
  const sample = parseOrigin(text.replace('*', anyLabel));
  const pattern = sample?.replace(anyLabel, '*');
  const labels = pattern?.split('.').length ?? 0;
  const isWhole = labels > 1 && labels <= originLabelsMax + 1;
  return isWhole ? pattern : undefined;
}

/** A label that the host of a sample begins with. */
const anyLabel = 'any';

/** Whether an origin is one for all subdomains of a host. */
export function isWildcardOrigin(pattern: string): boolean {
  return pattern.includes('://*.');
}

/**
 * Whether an origin is one of those that a pattern stands for: `https://*.example.com` for all of
 * its scheme and port whose host ends with `.example.com`, at any depth, as in a Content Security
 * Policy (CSP 3 §6.7.2.8) and in `server_name` of nginx; `*` for all. A pattern is one of those of
 * a wider one.
 */
export function coversOrigin(pattern: string, origin: string): boolean {
  if (pattern === '*' || pattern === origin) return true;
  if (!isWildcardOrigin(pattern)) return false;
  const star = pattern.indexOf('*');
  return (
    origin.length >= pattern.length &&
    origin.startsWith(pattern.slice(0, star)) &&
    origin.endsWith(pattern.slice(star + 1))
  );
}

/** The same for a host, whatever scheme and port the pattern has. */
export function coversHost(pattern: string, host: string): boolean {
  if (pattern === '*') return true;
  const own = hostOf(sampleOrigin(pattern));
  if (!isWildcardOrigin(pattern)) return own === host;
  const end = own.slice(anyLabel.length);
  return host.length > end.length && host.endsWith(end);
}

/** Whether some host is one of both patterns. */
export function sharesHost(one: string, other: string): boolean {
  if (one === '*' || other === '*') return true;
  return (
    coversHost(one, hostOf(sampleOrigin(other))) || coversHost(other, hostOf(sampleOrigin(one)))
  );
}

/** The order of patterns of one origin, the greatest first: exact, the longest wildcard, `*`. */
export function originRank(pattern: string): number {
  if (pattern === '*') return 0;
  return isWildcardOrigin(pattern) ? pattern.length : Number.MAX_SAFE_INTEGER;
}

/** The wildcards that cover an origin, the longest first. */
function wildcardOriginsOver(origin: string): readonly string[] {
  const start = origin.indexOf('://') + '://'.length;
  const scheme = origin.slice(0, start);
  const dots: number[] = [];
  for (let dot = origin.indexOf('.', start); dot !== -1; dot = origin.indexOf('.', dot + 1)) {
    dots.push(dot);
  }
  return dots.slice(-originLabelsMax).map((dot) => `${scheme}*${origin.slice(dot)}`);
}

/** The patterns that cover an origin, by originRank. */
export function patternsOver(origin: string): readonly string[] {
  return [origin, ...wildcardOriginsOver(origin), '*'];
}

/** An origin that a pattern stands for. */
export function sampleOrigin(pattern: string): string {
  if (pattern === '*') return 'http://any.invalid';
  return isWildcardOrigin(pattern) ? pattern.replace('*', anyLabel) : pattern;
}

/**
 * The origin at which something of one of some patterns answers: an own one, if they cover that.
 * There is at least one.
 */
export function originAt(patterns: readonly string[], own: string): string {
  const [first = '*'] = patterns;
  return patterns.some((one) => coversOrigin(one, own)) ? own : sampleOrigin(first);
}

function hostOf(origin: string): string {
  return new URL(origin).hostname;
}
