import { sampleOrigin, sharesHost } from '../../core/values/network/origin-pattern.ts';
import { cidr, isTls, sitePath, unixUrl } from '../../core/config/addresses.ts';
import type { Config } from '../../core/config/config.ts';
import { checkFile } from '../../core/config/files.ts';
import { fieldName } from '../../core/config/headers.ts';
import {
  type FieldsOf,
  fileKey,
  list,
  optional,
  originKey,
  single,
} from '../../core/config/ini-key.ts';
import { iniSection, type ParsedIni, type ParsedSection } from '../../core/config/ini-section.ts';
import type { LineProblem } from '../../core/config/problem.ts';
import { type ValueParser, anyText, choice, plainName, wordOr } from '../../core/config/values.ts';
import { countryCode } from '../../core/http/visitor.ts';
import { readCaCertificates } from '../../core/config/key-pair.ts';
import { readLinkKeys } from '../../core/config/secrets-keys.ts';
import { nearestName } from '../../core/values/nearest.ts';
import { escapedPath } from '../../core/values/path.ts';
import { pathPattern } from '../headers/section.ts';
import { providerNames } from '../login/section.ts';
import { geoSection, visitorSection } from '../visitors/section.ts';
import { narrowPathWarnings } from './narrow-paths.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    readonly access: readonly AccessConfig[];
  }
  /** `[access.<name>]`: who may see some paths. */
  interface AccessConfig extends FieldsOf<typeof accessKeys> {
    readonly name: string;
  }
}

/** The code of a country, in upper case. */
const country: ValueParser<string> = (text) => {
  const value = countryCode(text);
  return value === undefined
    ? { refused: 'write the two letters of a country, such as `DE`' }
    : { value };
};

/**
 * The URL of a server that decides about requests: http or https, without a user or fragment, or a
 * unix socket.
 */
const deciderUrl: ValueParser<string> = (value) =>
  unixUrl(value, /^[^\s#\\]*$/) ??
  (/^https?:\/\/[^\s/?#@\\]+(?:[/?][^\s#\\]*)?$/i.test(value) && URL.canParse(value)
    ? { value }
    : { refused: 'write the URL of a server, such as `http://127.0.0.1:9091/api/authz`' });

/** Fields that frame a request, or that decide which site it reaches. */
const notCopied: ReadonlySet<string> = new Set([
  ...['connection', 'content-length', 'expect', 'host', 'keep-alive', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'via'],
]);

/** A field that another server may add to a request. */
const copiedField: ValueParser<string> = (text) => {
  const name = fieldName(text);
  if ('refused' in name || !notCopied.has(name.value)) return name;
  return { refused: 'the server sets that field itself' };
};

/** The keys of `[access.<name>]`. */
const accessKeys = {
  origin: originKey('whose host is protected, with any scheme and port', {
    more: ' What answers under other names as well is not protected there.',
    example: 'https://staff.example.com',
    beside: { allow: '10.0.0.0/8' },
  }),
  path: list(pathPattern, '/*', {
    about:
      'The canonical paths that are protected; each `*` stands for any text, and a last `/` for ' +
      'all below it. Case, accents, repeated and encoded slashes and other spellings that an ' +
      'application may take for the same make no difference, and `/internal/` protects ' +
      '`/internal` as well. `/internal` alone protects one page. Empty ' +
      'for a section that protects only the page rules that name it in `access`.',
    example: '/internal/*',
    beside: { allow: '10.0.0.0/8' },
  }),
  except: list(pathPattern, '', {
    about: 'Paths that stay open. Here the spelling does matter.',
    example: '/internal/logo.svg',
    beside: { allow: '10.0.0.0/8' },
  }),
  allow: list(cidr, '', {
    about: 'Condition: the address of the client is in one of these networks.',
    example: '10.0.0.0/8, 2001:db8::/32',
  }),
  deny: list(cidr, '', {
    about: 'Networks that are refused with 403, whatever else holds.',
    example: '198.51.100.0/24',
  }),
  deny_file: fileKey({
    checkPath: checkFile,
    about:
      'A file with further such networks, one on each line; `#` begins a comment. A change of ' +
      'the file counts within a second.',
    example: 'blocked.txt',
  }),
  countries: list(country, '', {
    about:
      'Condition: the country of the client is one of these. Needs `[geo]`. `XX` stands for ' +
      'clients without a country, such as those of private networks.',
    example: 'DE, AT',
    besideSection: '[geo]\ncountry_header = CF-IPCountry',
  }),
  deny_countries: list(country, '', {
    about:
      'Condition: the country of the client is none of these. Needs `[geo]`. Addresses of ' +
      'private networks have no country: they are let in, unless `XX` is in the list. A public ' +
      'address is refused if its country is not known.',
    example: 'RU, XX',
    besideSection: '[geo]\ncountry_header = CF-IPCountry',
  }),
  users: list(anyText, '', {
    about:
      'Condition: the visitor has signed in (`yes`), or is one of these users. Needs `[login]` ' +
      'or `[auth]`.',
    example: 'ann, bob',
    besideSection: '[auth]\njwt_jwks = https://id.example.com/jwks.json',
  }),
  roles: list(anyText, '', {
    about: 'Condition: the signed-in visitor has one of these roles.',
    example: 'staff',
    besideSection: '[auth]\njwt_jwks = https://id.example.com/jwks.json',
  }),
  providers: list(plainName, '', {
    about:
      'The users and roles that count: those who have signed in at one of these providers, by ' +
      'the names of their `[login.<name>]`; `login` is that of `[login]`. Empty for all.',
    example: 'staff',
    beside: { users: 'yes' },
    besideSection: '[login.staff]\nissuer = https://id.example.com/realms/staff\nclient_id = www',
  }),
  password_file: fileKey({
    checkPath: checkFile,
    holds: 'a password file',
    about:
      'Condition: a name and a password (HTTP Basic) of this file, which has a line `name:hash` ' +
      'for each. `waymark password NAME` prints a line; the bcrypt lines of htpasswd are read, ' +
      'too. A change of the file counts within a second.',
    example: 'users.txt',
  }),
  link_key_file: fileKey({
    checkPath: readLinkKeys,
    holds: 'a key that signs links',
    about:
      'Condition: the URL ends with a signature that `waymark link sign URL --for 24h` has made, ' +
      'and its time has not passed. The file has a key a line, 32 bytes in base64: the first ' +
      'signs, all verify.',
    example: 'links.key',
  }),
  client_certificate: fileKey({
    checkPath: readCaCertificates,
    about:
      'Condition: the TLS client has a certificate of an authority in this PEM file. Clients of ' +
      'other hosts are not asked for one. A change of the file counts within a second.',
    example: 'staff-ca.pem',
  }),
  certificate_names: list(anyText, '', {
    about:
      'The certificates of `client_certificate` that are let in: those with one of these names ' +
      'as common name (CN), or as alternative name for DNS, mail or a URI. Empty for all.',
    example: 'ann@example.com, build.example.com',
    beside: { client_certificate: 'staff-ca.pem' },
  }),
  forward: optional(deciderUrl, {
    about:
      'Condition: another server answers the request, without its content, with 2xx. Otherwise ' +
      'the visitor gets its answer. The server may be in a private network.',
    example: 'http://127.0.0.1:9091/api/authz/forward-auth',
  }),
  copy: list(copiedField, '', {
    about:
      'Fields of that answer for the source of the page, in place of those of the client, which ' +
      'no request keeps.',
    example: 'Remote-User, Remote-Groups',
    beside: { forward: 'http://127.0.0.1:9091/api/authz/forward-auth' },
  }),
  satisfy: single(choice('all', 'any'), 'all', {
    about: 'Whether `all` conditions must hold, or `any` of them.',
    example: 'any',
    beside: { allow: '10.0.0.0/8', password_file: 'users.txt' },
  }),
  login: optional(wordOr('yes', wordOr('no', sitePath)), {
    write: (path: string | undefined) => (path === undefined ? '' : escapedPath(path)),
    about:
      'Where browsers sign in: `yes` for the provider of `[login]`, which is the default if ' +
      'users or roles decide, `no`, or a path of the site. They are sent there with the way back ' +
      'in the query, as `return_to`; the path itself stays open. Programs get 401.',
    example: '/sign-in',
    beside: { users: '*' },
    besideSection: '[auth]\njwt_jwks = https://id.example.com/jwks.json',
  }),
};

/** `[access.<name>]`: who may see some paths. */
export const accessSection = iniSection({
  header: 'access.<name>',
  keys: accessKeys,
  place: 'access',
  since: '0.2',
  about:
    'Who may see some paths, whatever source they come from. A visitor must satisfy every ' +
    'section whose paths match.',
  example: { name: 'staff', lines: { path: '/internal/*' } },
  check: (access, ini) => [
    ...conditionProblems(access, ini),
    ...providerProblems(access, ini),
    ...certificateProblems(access),
  ],
  warnings: (config) => [...withoutTls(config), ...narrowPathWarnings(config)],
});

function withoutTls({ access, server }: Config): readonly string[] {
  return access.flatMap(({ name, clientCertificate }) => {
    if (clientCertificate === undefined || server.listen.some(isTls)) return [];
    return `[access.${name}] client_certificate lets nobody in: no \`listen\` uses TLS.`;
  });
}

type ParsedAccess = ParsedSection<typeof accessKeys>;

/** Finds providers that do not exist, or that no condition needs. */
function providerProblems(access: readonly ParsedAccess[], ini: ParsedIni): readonly LineProblem[] {
  const known = providerNames(ini);
  return access.flatMap(({ line, lines, isValid, values }) => {
    const { providers, users, roles } = values;
    if (!isValid || providers.length === 0) return [];
    const at = lines.get('providers')?.[0] ?? line;
    if (users.length + roles.length === 0) {
      return [{ line: at, message: '`providers` needs `users` or `roles`, such as `users = yes`' }];
    }
    const unknown = providers.find((name) => !known.includes(name));
    if (unknown === undefined) return [];
    const nearest = nearestName(unknown, known);
    const hint = nearest === undefined ? '' : `; did you mean \`${nearest}\`?`;
    return [{ line: at, message: `there is no provider [login.${unknown}]${hint}` }];
  });
}

function conditionProblems(
  access: readonly ParsedAccess[],
  ini: ParsedIni,
): readonly LineProblem[] {
  const { user_header: header, jwt_jwks: keys } = ini.one(visitorSection).values;
  const hasProvider = providerNames(ini).length > 0;
  const knowsUsers = hasProvider || (header ?? keys) !== undefined;
  const { database, country_header: country } = ini.one(geoSection).values;
  const knowsCountries = (database ?? country) !== undefined;
  return access.flatMap(({ name, line, lines, isValid, values }) => {
    if (!isValid) return [];
    const at = (key: string, message: string): readonly LineProblem[] => [
      { line: lines.get(key)?.[0] ?? line, message },
    ];
    const asksUsers = values.users.length + values.roles.length > 0;
    const asksCountries = values.countries.length + values.deny_countries.length > 0;
    const canSignIn = asksUsers || (values.password_file ?? values.forward) !== undefined;
    const hasNetworks =
      values.allow.length + values.deny.length > 0 || values.deny_file !== undefined;
    const { link_key_file: links, client_certificate: authorities } = values;
    const hasFile = (links ?? authorities) !== undefined;
    if (!canSignIn && !asksCountries && !hasNetworks && !hasFile) {
      const advice = 'add one, such as `allow` or `password_file`';
      return [{ line, message: `[access.${name}] has no condition: ${advice}` }];
    }
    if (asksUsers && !knowsUsers) {
      const key = values.users.length > 0 ? 'users' : 'roles';
      const needed = '`issuer` in [login], or `user_header` or `jwt_jwks` in [auth]';
      return at(key, `\`${key}\` needs ${needed}`);
    }
    if (values.users.includes('yes') && values.users.length > 1) {
      return at('users', 'write either `users = yes` or the names of users');
    }
    if (asksCountries && !knowsCountries) {
      const key = values.countries.length > 0 ? 'countries' : 'deny_countries';
      return at(key, `\`${key}\` needs \`database\` or \`country_header\` in [geo]`);
    }
    if (values.copy.length > 0 && values.forward === undefined) {
      return at('copy', '`copy` needs `forward`, whose answer has the fields');
    }
    if (values.login === 'yes' && !(asksUsers && hasProvider)) {
      return at('login', '`login = yes` needs `users` or `roles`, and `issuer` in [login]');
    }
    return values.login !== undefined && !canSignIn
      ? at('login', '`login` needs a condition that signing in can meet, such as `users = yes`')
      : [];
  });
}

/** Finds client certificates that no handshake could ask for, or only by one of two files. */
function certificateProblems(access: readonly ParsedAccess[]): readonly LineProblem[] {
  return access.flatMap(({ name, line, lines, values }, at) => {
    const problem = (key: string, message: string): readonly LineProblem[] => [
      { line: lines.get(key)?.[0] ?? line, message },
    ];
    const { client_certificate: file, certificate_names: names } = values;
    if (file === undefined) {
      if (names.length === 0) return [];
      return problem('certificate_names', '`certificate_names` needs `client_certificate`');
    }
    if (isAddress.test(new URL(sampleOrigin(values.origin)).hostname)) {
      const why = 'a handshake names no address, so it asks for no certificate';
      return problem('origin', `${why}: write the name of a host`);
    }
    const other = access.slice(0, at).find((earlier) => {
      const { client_certificate: its, origin: place } = earlier.values;
      if (its === undefined || its === file) return false;
      return sharesHost(place, values.origin);
    });
    if (other === undefined) return [];
    const advice = 'put the certificates of both into one file, or name other origins';
    const same = `[access.${other.name}] has another file for the same host as [access.${name}]`;
    return problem('client_certificate', `${same}: ${advice}`);
  });
}

/** The host of a URL that is an address of IPv4 or IPv6. */
const isAddress = /^[\d.]+$|^\[/;
