import { fieldLines, isCacheControl, replyField, withoutFields, type Reply } from '../reply.ts';

/**
 * An answer that no cache may use after a time, because another page rule answers then: freshness
 * (RFC 9111 §4.2) that lasts longer is shortened, also that of providers (RFC 9213), and an answer
 * without any gets `no-cache`, so that no cache guesses. Times are in milliseconds since 1970.
 */
export function limitFreshness(
  reply: Reply,
  { endMs, nowMs }: { readonly endMs: number; readonly nowMs: number },
): Reply {
  const age = Number(replyField(reply, 'age') ?? 0) || 0;
  // Seconds until then, less the one for which a prepared answer is sent again.
  const left = Math.max(0, Math.floor((endMs - nowMs) / 1_000) - 1);
  const names = new Set(reply.fields.filter((name, at) => at % 2 === 0 && isCaching(name)));
  const limited = [...names].flatMap((name) => {
    const directives = directivesOf(fieldLines(reply.fields, name.toLowerCase()));
    const kept = limitDirectives(directives, left + age);
    return kept === directives ? [] : [[name, kept.join(', ')] as const];
  });
  const hasCaching = [...names].some((name) => name.toLowerCase() === 'cache-control');
  const expires = replyField(reply, 'expires');
  if (!hasCaching && expires === undefined) limited.push(['Cache-Control', 'no-cache']);
  if (expires !== undefined && Date.parse(expires) > nowMs + left * 1_000) {
    limited.push(['Expires', new Date(nowMs + left * 1_000).toUTCString()]);
  }
  // Those that are no lists of directives go: their caches then read Cache-Control.
  const others = reply.fields.filter(
    (name, at) => at % 2 === 0 && isCacheControl(name) && !isCaching(name),
  );
  if (limited.length === 0 && others.length === 0) return reply;
  const changed = [...limited.map(([name]) => name), ...others].map((name) => name.toLowerCase());
  return { ...reply, fields: [...withoutFields(reply.fields, ...changed), ...limited.flat()] };
}

function isCaching(name: string): boolean {
  return /(?:^|-)cache-control$|^surrogate-control$/i.test(name);
}

function directivesOf(lines: readonly string[]): readonly string[] {
  return lines
    .join()
    .split(',')
    .map((directive) => directive.trim())
    .filter((directive) => directive !== '');
}

/** The same list if a cache may use the answer for at most `secondsMax` by it. */
function limitDirectives(directives: readonly string[], secondsMax: number): readonly string[] {
  if (directives.some((one) => /^(?:no-store|no-cache)$/i.test(one))) return directives;
  const [fresh, stale] = [freshFor, staleFor].map((pattern) =>
    directives.map((one) => Number(pattern.exec(one)?.[1] ?? -1)),
  );
  const longest = Math.max(0, ...(fresh ?? [])) + Math.max(0, ...(stale ?? []));
  const isExplicit = fresh?.some((seconds) => seconds >= 0) === true;
  if (isExplicit && longest <= secondsMax) return directives;
  const kept = directives
    .filter((one) => !staleFor.test(one) && !/^immutable$/i.test(one))
    .map((one) => {
      const seconds = Number(freshFor.exec(one)?.[1] ?? -1);
      return seconds > secondsMax ? `${one.split('=')[0] ?? ''}=${secondsMax}` : one;
    });
  return isExplicit ? kept : [...kept, 'no-cache'];
}

const freshFor = /^(?:s-maxage|max-age)="?(\d+)"?$/i;
const staleFor = /^(?:stale-while-revalidate|stale-if-error)="?(\d+)"?$/i;
