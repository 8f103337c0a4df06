import { Failure } from '../../model/failure.ts';
import type { Call } from '../operation.ts';

/**
 * Throws `forbidden` for a call that a page of another site has caused: the browser would send the
 * cookie of the user with it. A bearer token is sent by programs only, so it is no such proof.
 */
export function requireSameOrigin(
  { fields, origin: own }: Pick<Call, 'fields' | 'origin'>,
  isOwnOrigin: (origin: string) => boolean,
): void {
  if (/^bearer /i.test(fields.authorization ?? '')) return;
  const { origin, 'sec-fetch-site': site } = fields;
  // Browsers send Origin with every POST and every upgrade; other programs need not.
  const isOwn = origin === undefined || origin === own || isOwnOrigin(origin);
  if (isOwn && (site === undefined || site === 'same-origin' || site === 'none')) return;
  throw new Failure(
    'forbidden',
    'A user may do this from a page of this site only. Send the request from the same origin.',
  );
}
