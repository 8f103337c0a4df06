import { open } from 'node:fs/promises';
import { cidr, urlOrFile } from '../../core/config/addresses.ts';
import { checkFile } from '../../core/config/files.ts';
import { cookieName, fieldName } from '../../core/config/headers.ts';
import { type FieldsOf, fileKey, list, optional, single } from '../../core/config/ini-key.ts';
import { iniSection, problemOf } from '../../core/config/ini-section.ts';
import { jwksBytesMax } from '../../core/config/limits.ts';
import { readJson } from '../../core/config/references.ts';
import { anyText, claimPath, type Refused } from '../../core/config/values.ts';
import { untrustedFields } from '../../core/config/warnings.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    readonly geo: FieldsOf<typeof geoKeys>;
  }
  // oxlint-disable-next-line typescript/no-empty-object-type -- it adds to that of the core
  interface AuthConfig extends FieldsOf<typeof visitorKeys> {}
}

/** A JWK Set (RFC 7517 §5) is an object with an array `keys`. */
async function checkKeySet(path: string): Promise<Refused | undefined> {
  const read = await readJson(path, { bytesMax: jwksBytesMax });
  if ('refused' in read) return read;
  const refused = 'is not a JWK Set: it has no array `keys`';
  return Array.isArray(read.object.keys) ? undefined : { refused };
}

/** Whether a text is a JWK Set (RFC 7517 §5) of public keys alone, which anyone may have. */
function isPublicKeySet(text: string): boolean {
  try {
    const { keys } = JSON.parse(text) as { readonly keys?: unknown };
    return Array.isArray(keys) && keys.every(isPublicKey);
  } catch {
    return false;
  }
}

/** Private keys have a member `d`, and keys that sign and verify have `k` (RFC 7518 §6). */
function isPublicKey(key: unknown): boolean {
  return typeof key === 'object' && key !== null && !('d' in key) && !('k' in key);
}

const visitorKeys = {
  user_header: optional(fieldName, {
    about: 'The field in which a trusted proxy names the signed-in user.',
    example: 'X-User',
  }),
  roles_header: optional(fieldName, {
    about: 'The field in which a trusted proxy names the roles, separated by commas.',
    example: 'X-Roles',
  }),
  jwt_jwks: optional(urlOrFile, {
    isPath: true,
    holds: 'the keys of tokens',
    isOpen: isPublicKeySet,
    checkPath: checkKeySet,
    about: 'The public keys of tokens: a URL, or a file in the format of RFC 7517.',
    example: 'https://id.example.com/jwks.json',
  }),
  jwt_issuer: optional(anyText, {
    about: 'The `iss` that a token must have.',
    example: 'https://id.example.com/',
    beside: { jwt_jwks: 'https://id.example.com/jwks.json' },
  }),
  jwt_audience: optional(anyText, {
    about: 'The `aud` that a token must have.',
    example: 'shop',
    beside: { jwt_jwks: 'https://id.example.com/jwks.json' },
  }),
  jwt_cookie: single(cookieName, 'jwt', {
    about: 'The cookie that may contain the token.',
    example: 'session',
    beside: { jwt_jwks: 'https://id.example.com/jwks.json' },
  }),
  jwt_user: single(claimPath, 'sub', {
    about: "The claim with the user's name; a dot leads to a member.",
    example: 'preferred_username',
    beside: { jwt_jwks: 'https://id.example.com/jwks.json' },
  }),
  jwt_roles: single(claimPath, 'roles', {
    about: 'The claim with the roles.',
    example: 'realm_access.roles',
    beside: { jwt_jwks: 'https://id.example.com/jwks.json' },
  }),
  allow_private: list(cidr, '', {
    about: 'Private networks that the server of `jwt_jwks` may be in.',
    example: '10.20.0.0/16',
  }),
};

/** The keys of `[auth]` that say who a visitor is. */
export const visitorSection = iniSection({
  header: 'auth',
  keys: visitorKeys,
  since: '0.1',
  check: ([auth]) => {
    const { jwt_jwks, jwt_issuer, jwt_audience } = auth?.values ?? {};
    if (jwt_jwks !== undefined || auth?.isValid !== true) return [];
    return Object.entries({ jwt_issuer, jwt_audience }).flatMap(([key, value]) => {
      const message = `\`${key}\` needs \`jwt_jwks\`, too`;
      return value === undefined ? [] : [problemOf(auth, key, message)];
    });
  },
  warnings: (config) =>
    untrustedFields(config, {
      '[auth] user_header': config.auth.userHeader,
      '[auth] roles_header': config.auth.rolesHeader,
    }),
});

/** The start of the metadata at the end of a database (MMDB 2.0, Database Metadata). */
const marker = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1');
/** The longest metadata, by the same section. */
const metadataBytesMax = 131_072;

/** Checks that a file ends with the metadata of a MaxMind database. */
async function checkDatabase(path: string): Promise<Refused | undefined> {
  const refused = await checkFile(path);
  if (refused !== undefined) return refused;
  await using file = await open(path);
  const { size } = await file.stat();
  const length = Math.min(size, metadataBytesMax);
  const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
  return buffer.includes(marker) ? undefined : { refused: 'is not a MaxMind database' };
}

const geoKeys = {
  database: fileKey({
    checkPath: checkDatabase,
    about: "A file in MaxMind's format that says where addresses are.",
    example: 'geo/countries.mmdb',
  }),
  country_header: optional(fieldName, {
    about: "The field in which a trusted proxy names the visitor's country.",
    example: 'CF-IPCountry',
  }),
  region_header: optional(fieldName, {
    about: "The field in which a trusted proxy names the visitor's region.",
    example: 'CF-Region-Code',
    since: '0.2',
  }),
  city_header: optional(fieldName, {
    about: "The field in which a trusted proxy names the visitor's city.",
    example: 'CF-IPCity',
    since: '0.2',
  }),
};

/** `[geo]`: where visitors are. */
export const geoSection = iniSection({
  header: 'geo',
  keys: geoKeys,
  place: 'geo',
  since: '0.1',
  warnings: (config) =>
    untrustedFields(config, {
      '[geo] country_header': config.geo.countryHeader,
      '[geo] region_header': config.geo.regionHeader,
      '[geo] city_header': config.geo.cityHeader,
    }),
});
