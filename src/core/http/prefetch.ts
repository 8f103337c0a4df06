import type { Fields } from './request.ts';

/**
 * Whether a browser requests a page that it may never show (Fetch §Sec-Purpose); `purpose` is the
 * value of prefetchPurpose.
 */
export function isPrefetch(purpose: string): boolean {
  return purpose !== '' && /^\s*(?:prefetch|preview)/i.test(purpose);
}

/** The field that names such a request, of today's browsers or of older ones; empty without one. */
export function prefetchPurpose(fields: Fields): string {
  return fields['sec-purpose'] ?? fields.purpose ?? fields['x-moz'] ?? '';
}
