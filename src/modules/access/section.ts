import { sampleOrigin, sharesHost } from '../../core/values/network/origin-pattern.ts';
import { cidr, originPattern, sitePath, unixUrl } from '../../core/config/addresses.ts';
import { fieldName } from '../../core/config/headers.ts';
import {
  type KeyText,
  type ParsedKeys,
  list,
  optional,
  single,
} from '../../core/config/ini-key.ts';
import type { LineProblem } from '../../core/config/problem.ts';
import { type ValueParser, anyText, choice, plainName, wordOr } from '../../core/config/values.ts';
import { countryCode } from '../../core/http/visitor.ts';
import { nearestName } from '../../core/values/nearest.ts';
import { escapedPath } from '../../core/values/path.ts';
import { pathPattern } from '../headers/section.ts';
import { providerNames } from '../login/section.ts';

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
export const accessKeys = {
  origin: single(originPattern, '*'),
  path: list(pathPattern, '/*'),
  except: list(pathPattern, ''),
  allow: list(cidr, ''),
  deny: list(cidr, ''),
  deny_file: optional(anyText, { isPath: true }),
  countries: list(country, ''),
  deny_countries: list(country, ''),
  users: list(anyText, ''),
  roles: list(anyText, ''),
  providers: list(plainName, ''),
  password_file: optional(anyText, { isPath: true, holds: 'a password file' }),
  link_key_file: optional(anyText, { isPath: true, holds: 'a key that signs links' }),
  client_certificate: optional(anyText, { isPath: true }),
  certificate_names: list(anyText, ''),
  forward: optional(deciderUrl),
  copy: list(copiedField, ''),
  satisfy: single(choice('all', 'any'), 'all'),
  login: optional(wordOr('yes', wordOr('no', sitePath)), {
    write: (path: string | undefined) => (path === undefined ? '' : escapedPath(path)),
  }),
};

/** What the reference says about each key. */
export const accessTexts: Readonly<Record<keyof typeof accessKeys, KeyText>> = {
  origin: {
    about:
      'The origin whose host is protected, with any scheme and port; `https://*.example.com` for ' +
      'all subdomains, `*` for every origin. What ' +
      'answers under other names as well is not protected there.',
    example: 'https://staff.example.com',
  },
  path: {
    about:
      'The canonical paths that are protected; each `*` stands for any text, and a last `/` for ' +
      'all below it. Case, accents, repeated and encoded slashes and other spellings that an ' +
      'application may take for the same make no difference, and `/internal/` protects ' +
      '`/internal` as well. `/internal` alone protects one page. Empty ' +
      'for a section that protects only the page rules that name it in `access`.',
    example: '/internal/*',
  },
  except: {
    about: 'Paths that stay open. Here the spelling does matter.',
    example: '/internal/logo.svg',
  },
  allow: {
    about: 'Condition: the address of the client is in one of these networks.',
    example: '10.0.0.0/8, 2001:db8::/32',
  },
  deny: {
    about: 'Networks that are refused with 403, whatever else holds.',
    example: '198.51.100.0/24',
  },
  deny_file: {
    about:
      'A file with further such networks, one on each line; `#` begins a comment. A change of ' +
      'the file counts within a second.',
    example: 'blocked.txt',
  },
  countries: {
    about:
      'Condition: the country of the client is one of these. Needs `[geo]`. `XX` stands for ' +
      'clients without a country, such as those of private networks.',
    example: 'DE, AT',
  },
  deny_countries: {
    about:
      'Condition: the country of the client is none of these. Needs `[geo]`. Addresses of ' +
      'private networks have no country: they are let in, unless `XX` is in the list. A public ' +
      'address is refused if its country is not known.',
    example: 'RU, XX',
  },
  users: {
    about:
      'Condition: the visitor has signed in (`yes`), or is one of these users. Needs `[login]` ' +
      'or `[auth]`.',
    example: 'ann, bob',
  },
  roles: {
    about: 'Condition: the signed-in visitor has one of these roles.',
    example: 'staff',
  },
  providers: {
    about:
      'The users and roles that count: those who have signed in at one of these providers, by ' +
      'the names of their `[login.<name>]`; `login` is that of `[login]`. Empty for all.',
    example: 'staff',
  },
  password_file: {
    about:
      'Condition: a name and a password (HTTP Basic) of this file, which has a line `name:hash` ' +
      'for each. `waymark password NAME` prints a line; the bcrypt lines of htpasswd are read, ' +
      'too. A change of the file counts within a second.',
    example: 'users.txt',
  },
  link_key_file: {
    about:
      'Condition: the URL ends with a signature that `waymark link sign URL --for 24h` has made, ' +
      'and its time has not passed. The file has a key a line, 32 bytes in base64: the first ' +
      'signs, all verify.',
    example: 'links.key',
  },
  client_certificate: {
    about:
      'Condition: the TLS client has a certificate of an authority in this PEM file. Clients of ' +
      'other hosts are not asked for one. A change of the file counts within a second.',
    example: 'staff-ca.pem',
  },
  certificate_names: {
    about:
      'The certificates of `client_certificate` that are let in: those with one of these names ' +
      'as common name (CN), or as alternative name for DNS, mail or a URI. Empty for all.',
    example: 'ann@example.com, build.example.com',
  },
  forward: {
    about:
      'Condition: another server answers the request, without its content, with 2xx. Otherwise ' +
      'the visitor gets its answer. The server may be in a private network.',
    example: 'http://127.0.0.1:9091/api/authz/forward-auth',
  },
  copy: {
    about:
      'Fields of that answer for the source of the page, in place of those of the client, which ' +
      'no request keeps.',
    example: 'Remote-User, Remote-Groups',
  },
  satisfy: { about: 'Whether `all` conditions must hold, or `any` of them.', example: 'any' },
  login: {
    about:
      'Where browsers sign in: `yes` for the provider of `[login]`, which is the default if ' +
      'users or roles decide, `no`, or a path of the site. They are sent there with the way back ' +
      'in the query, as `return_to`; the path itself stays open. Programs get 401.',
    example: '/sign-in',
  },
};

type ParsedAccess = ParsedKeys<typeof accessKeys>;

/** What access rules need of other sections. */
interface Surroundings {
  readonly access: readonly ParsedAccess[];
  readonly auth: {
    readonly values: {
      readonly user_header: string | undefined;
      readonly jwt_jwks: string | undefined;
    };
  };
  readonly login: Parameters<typeof providerNames>[0]['login'];
  readonly logins: Parameters<typeof providerNames>[0]['logins'];
  readonly geo: {
    readonly values: {
      readonly database: string | undefined;
      readonly country_header: string | undefined;
    };
  };
}

/** Finds access rules without a condition, and conditions that can never hold. */
export function accessProblems(surroundings: Surroundings): readonly LineProblem[] {
  return [
    ...conditionProblems(surroundings),
    ...providerProblems(surroundings),
    ...certificateProblems(surroundings),
  ];
}

/** Finds providers that do not exist, or that no condition needs. */
function providerProblems(surroundings: Surroundings): readonly LineProblem[] {
  const known = providerNames(surroundings);
  return surroundings.access.flatMap(({ line, lines, isValid, values }) => {
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

function conditionProblems(surroundings: Surroundings): readonly LineProblem[] {
  const { access, auth, geo } = surroundings;
  const { user_header: header, jwt_jwks: keys } = auth.values;
  const hasProvider = providerNames(surroundings).length > 0;
  const knowsUsers = hasProvider || (header ?? keys) !== undefined;
  const knowsCountries = (geo.values.database ?? geo.values.country_header) !== undefined;
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
function certificateProblems({ access }: Surroundings): readonly LineProblem[] {
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
