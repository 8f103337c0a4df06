import { service, type Json } from '../api/api.ts';

/** The address of a rule on this site; undefined for a breadcrumb's key. */
export function addressOf(rule: {
  readonly origin?: Json;
  readonly path?: Json;
}): string | undefined {
  const { origin, path } = rule;
  if (typeof path !== 'string' || !path.startsWith('/')) return undefined;
  const start = siteOf(typeof origin === 'string' ? origin : '*');
  return start + encodeURI(path.replace(/\*$/, '')).replaceAll('?', '%3F').replaceAll('#', '%23');
}

/**
 * A site of the origins of a rule: this one if it is one of them, else the first, of a wildcard
 * that of `www`, which most hosts have.
 */
export function siteOf(origin: string): string {
  const { origin: own } = service;
  const isOwn = (one: string): boolean => {
    const [start = '', end] = one.split('*');
    return one === own || (end !== undefined && own.startsWith(start) && own.endsWith(end));
  };
  const all = origin.split(' ');
  return all.some(isOwn) ? own : (all[0] ?? '').replace('*', 'www');
}
