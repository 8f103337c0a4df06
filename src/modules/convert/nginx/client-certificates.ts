import { type Directive, allOf, lastOf } from '../directive.ts';
import { addAccess } from '../sections.ts';
import { type NginxSite, effective, nearest } from './site.ts';

/** Directives about the certificates of clients, which this file converts. */
export const clientCertificateDirectives: readonly string[] = [
  ...['ssl_client_certificate', 'ssl_verify_client'],
];

/** A location whose paths may be expressed. */
interface Place {
  readonly directive: Directive;
  readonly block: readonly Directive[];
  readonly paths: readonly string[] | undefined;
}

/**
 * Converts the certificates that clients need: for a whole server by `ssl_verify_client on`, or
 * where an `if` refuses a client without one. Leaves what asks for one and demands none.
 */
export function convertClientCertificates(
  site: NginxSite,
  block: readonly Directive[],
  places: readonly Place[],
): void {
  const verify = effective(site, block, 'ssl_verify_client');
  const [mode = 'off'] = verify?.words ?? [];
  if (verify === undefined || mode === 'off') {
    // Without a certificate that is verified, such an `if` refuses everybody.
    const ifs = [block, ...places.map((place) => place.block)].flatMap((one) => allOf(one, 'if'));
    for (const one of ifs.filter(refusesOthers)) {
      site.conversion.leave(one, nearest.ssl_verify_client ?? '');
    }
    return;
  }
  const file = effective(site, block, 'ssl_client_certificate');
  const path = file?.words[0];
  if (file === undefined || path?.includes('$') !== false || mode === 'optional_no_ca') {
    site.conversion.leave(verify, nearest.ssl_verify_client ?? '');
    return;
  }
  const protect = (paths: readonly string[], source: Directive): void => {
    addAccess(site, { paths, clientCertificate: path }, source);
  };
  if (mode === 'on' || allOf(block, 'if').some(refusesOthers)) {
    protect(['/*'], verify);
    return;
  }
  const demanding = places.filter((place) => allOf(place.block, 'if').some(refusesOthers));
  for (const { paths, directive } of demanding) {
    if (paths === undefined) site.conversion.leave(directive, nearest.ssl_verify_client ?? '');
    else protect(paths, directive);
  }
  if (demanding.length === 0) site.conversion.leave(verify, optionalNearest);
}

const optionalNearest =
  '`client_certificate` of an `[access.<name>]` section, which does not ask for a certificate ' +
  'that it does not need';

/** Whether an `if` refuses clients without a certificate. */
export function refusesOthers({ words, block = [] }: Directive): boolean {
  const condition = words
    .join(' ')
    .replaceAll(/["'()]/g, '')
    .trim();
  const isOfOthers = /^\$ssl_client_verify != SUCCESS$/.test(condition);
  return isOfOthers && /^4\d\d$/.test(lastOf(block, 'return')?.words[0] ?? '');
}
