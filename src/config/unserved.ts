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
