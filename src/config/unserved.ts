import { Failure } from '../model/failure.ts';
import type { Config } from './config.ts';

/**
 * The settings of a configuration that are read and checked but that this version does not act on,
 * as `[section] key`: whoever wrote them has to know.
 */
export function unserved({ auth, geo }: Config): readonly string[] {
  const settings: readonly (readonly [string, boolean])[] = [
    ['[auth] jwt_jwks', auth.jwtJwks !== undefined],
    ['[geo] database', geo.database !== undefined],
    ['[geo] country_header', geo.countryHeader !== undefined],
  ];
  return settings.filter(([, isSet]) => isSet).map(([name]) => name);
}

/**
 * Fails with `invalid` for a configuration that asks for TLS, which this version does not speak:
 * plain text in its place would be worse than no answer.
 */
export function requireServed({ file, tls }: Config): void {
  if (tls.certificates.length === 0) return;
  throw new Failure(
    'invalid',
    `${file} has a [tls] section, which this version cannot serve: leave it out, and let a proxy ` +
      'in front end TLS (trust_proxy names it).',
  );
}
