import { service, type Json } from '../api/api.ts';

/** The address of a rule on this site; undefined for a breadcrumb's key. */
export function addressOf(rule: {
  readonly origin?: Json;
  readonly path?: Json;
}): string | undefined {
  const { origin, path } = rule;
  if (typeof path !== 'string' || !path.startsWith('/')) return undefined;
  const start = typeof origin === 'string' && origin !== '*' ? origin : service.origin;
  return start + encodeURI(path.replace(/\*$/, '')).replaceAll('?', '%3F').replaceAll('#', '%23');
}
