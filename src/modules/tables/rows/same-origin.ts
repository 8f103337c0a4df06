import { Failure } from '../../../core/values/failure.ts';
import type { Call } from '../../../core/operations/operation.ts';

/** Whether a page of this site, or a program that is no browser, has caused a call. */
export function isSameOrigin(
  { fields, origin: own }: Pick<Call, 'fields' | 'origin'>,
  isOwnOrigin: (origin: string) => boolean,
): boolean {
  // A browser adds a cookie by itself, but no bearer token.
  if (/^bearer /i.test(fields.authorization ?? '')) return true;
  const { origin, 'sec-fetch-site': site } = fields;
  // Browsers send Origin with every POST and every upgrade; other programs need not.
  const isOwn = origin === undefined || origin === own || isOwnOrigin(origin);
  return isOwn && (site === undefined || site === 'same-origin' || site === 'none');
}

/**
 * Throws `forbidden` for a call that a page of another site has caused: the browser would send the
 * cookie of the user with it.
 */
export function requireSameOrigin(
  call: Pick<Call, 'fields' | 'origin'>,
  isOwnOrigin: (origin: string) => boolean,
): void {
  if (isSameOrigin(call, isOwnOrigin)) return;
  throw new Failure(
    'forbidden',
    'A user may do this from a page of this site only. Send the request from the same origin.',
  );
}
