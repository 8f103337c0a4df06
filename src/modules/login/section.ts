import { sitePath } from '../../core/config/addresses.ts';
import type { Config, LoginConfig } from '../../core/config/config.ts';
import { type FieldsOf, list, optional, single } from '../../core/config/ini-key.ts';
import {
  iniSection,
  type ParsedIni,
  type ParsedSection,
  type ReadFiles,
  problemOf,
} from '../../core/config/ini-section.ts';
import { packageProblems } from '../../core/config/needed-package.ts';
import type { LineProblem } from '../../core/config/problem.ts';
import {
  type ValueParser,
  anyText,
  choice,
  claimPath,
  duration,
  scope,
  wordOr,
} from '../../core/config/values.ts';
import type { Scope } from '../../core/values/key.ts';
import { loadOpenIdClient } from './lazy-packages.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    /** Without an issuer, nobody signs in here. */
    readonly login: FieldsOf<typeof loginKeys>;
    /** Further providers, in the order of the file. */
    readonly logins: readonly (FieldsOf<typeof loginKeys> & { readonly name: string })[];
  }
  /** A provider where visitors sign in. */
  interface LoginConfig extends Omit<Config['login'], 'issuer' | 'clientId' | 'prefix'> {
    /** The name of its section; `login` for that of `[login]`. */
    readonly name: string;
    readonly issuer: string;
    readonly clientId: string;
    /** The text before the names of its users and roles. */
    readonly prefix: string;
  }
}

const providerLines = { issuer: 'https://id.example.com/realms/staff', client_id: 'www' };

/** The URL of an OpenID Connect provider; without TLS only on this machine, for development. */
const issuerUrl: ValueParser<string> = (value) => {
  const refused = 'write the https URL of the issuer, such as `https://id.example.com/`';
  const url = /^https?:\/\/[^\s?#@\\]+$/i.test(value) ? URL.parse(value) : null;
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(url?.hostname ?? '');
  return url?.protocol === 'https:' || isLocal ? { value } : { refused };
};

/** A scope that a person can use; `follow` belongs to a node. */
const personScope: ValueParser<Scope> = (text) =>
  text === 'follow' ? { refused: '`follow` is for the keys of nodes' } : scope(text);

/** The text before the names of users and roles. */
const namePrefix: ValueParser<string> = (text) =>
  /^[\w.:/@-]{1,32}$/.test(text)
    ? { value: text }
    : { refused: 'write up to 32 letters, digits and `.`, `:`, `/`, `@`, `-`, `_`; or `no`' };

/** The keys of `[login]` and `[login.<name>]`. */
const loginKeys = {
  issuer: optional(issuerUrl, {
    about:
      'The OpenID Connect provider where visitors sign in. Its addresses are read from ' +
      '`/.well-known/openid-configuration` below it.',
    example: 'https://id.example.com/realms/staff',
  }),
  client_id: optional(anyText, {
    about: 'The name of this server at the provider.',
    example: 'www',
  }),
  client_secret: optional(anyText, {
    isSecret: true,
    about:
      'Its secret there, or a variable with it, such as `${LOGIN_SECRET}`; without one, the ' +
      'server is a public client.',
    example: '4f1eZ0s2mB',
  }),
  client_auth: single(choice('basic', 'post'), 'basic', {
    about:
      'How the server sends its secret: `basic` in the field Authorization, or `post` in a form.',
    example: 'post',
  }),
  scopes: list(anyText, 'openid', {
    about: 'What the server asks the provider for; `openid` is always among it.',
    example: 'openid email profile',
  }),
  user: single(claimPath, 'sub', {
    about: "The claim with the user's name; a dot leads to a member.",
    example: 'preferred_username',
  }),
  roles: single(claimPath, 'roles', { about: 'The claim with the roles.', example: 'groups' }),
  lifetime: single(duration('1m', '30d'), '12h', {
    field: 'lifetimeMs',
    about: 'How long a session lasts. Then the browser goes to the provider again.',
    example: '8h',
  }),
  signed_out: single(sitePath, '/', {
    about: 'The path to which a browser comes after signing out.',
    example: '/bye',
  }),
  title: optional(anyText, {
    about:
      'The name of the provider on the page where visitors choose between several; by default ' +
      'the host of its issuer.',
    example: 'Staff',
  }),
  prefix: optional(wordOr('no', namePrefix), {
    about:
      'The text before the names of its users and roles, or `no` for none. By default the name ' +
      'of the section and a colon, such as `staff:ann`, and none for `[login]`: two providers ' +
      'may have an `ann` or a role `admin`, who must not pass for each other.',
    example: 'no',
  }),
  console_roles: list(anyText, '', {
    about: 'Roles of which one lets people into the console without an API key.',
    example: 'editors, admins',
  }),
  console_scopes: list(personScope, 'admin', {
    about: 'What they may do there, as the scopes of a key.',
    example: 'read, design, publish',
  }),
};

/** `[login]`: a provider where visitors sign in. */
export const loginSection = iniSection({
  header: 'login',
  keys: loginKeys,
  place: 'login',
  since: '0.2',
  example: { lines: providerLines },
  check: (logins) => logins.flatMap((one) => providerProblems(one, false)),
  read: clientProblems,
  warnings: ({ login, node }) => consoleWarnings('[login]', login, node),
});

/** `[login.<name>]`: a further provider. */
export const namedLoginSection = iniSection({
  header: 'login.<name>',
  keys: loginKeys,
  place: 'logins',
  read: clientProblems,
  since: '0.2',
  about: 'A further provider where visitors sign in. It has the keys of `[login]`.',
  example: { name: 'staff', lines: providerLines },
  check: (logins) =>
    logins.flatMap((one) => {
      const why = 'that is the name of [login] itself';
      const message = `[login.${ownLoginName}] needs another name: ${why}`;
      const isOwn = one.name === ownLoginName;
      return [...providerProblems(one, true), ...(isOwn ? [{ line: one.line, message }] : [])];
    }),
  warnings: ({ logins, node }) =>
    logins.flatMap((one) => consoleWarnings(`[login.${one.name}]`, one, node)),
});

function consoleWarnings(
  title: string,
  { issuer, consoleRoles }: Config['login'],
  { central }: Config['node'],
): readonly string[] {
  if (consoleRoles.length === 0 || (issuer !== undefined && central === undefined)) return [];
  const why = issuer === undefined ? 'there is no issuer' : 'this node follows a centre';
  return [`${title} console_roles has no effect: ${why}.`];
}

type ParsedLogin = ParsedSection<typeof loginKeys>;

/** The problem of a provider without the package that speaks with it. */
function clientProblems(login: ParsedLogin): Promise<ReadFiles> {
  if (login.values.issuer === undefined) return Promise.resolve({});
  return packageProblems(login, 'issuer', loadOpenIdClient);
}

/** The name of the provider of `[login]` itself. */
export const ownLoginName = 'login';

function providerProblems(section: ParsedLogin, isNamed: boolean): readonly LineProblem[] {
  const { values, line, isValid } = section;
  if (!isValid) return [];
  if (values.issuer === undefined) {
    if (isNamed) return [{ line, message: `[login.${section.name}] needs \`issuer\`` }];
    const { client_id, client_secret } = values;
    const given = Object.entries({ client_id, client_secret });
    const key = given.find(([, value]) => value !== undefined)?.[0];
    if (key === undefined) return [];
    return [problemOf(section, key, `\`${key}\` needs \`issuer\`, too`)];
  }
  return values.client_id === undefined
    ? [problemOf(section, 'issuer', '`issuer` needs `client_id`, too')]
    : [];
}

/** The names of the providers. */
export function providerNames(ini: ParsedIni): readonly string[] {
  const own = ini.one(loginSection).values.issuer === undefined ? [] : [ownLoginName];
  return [...own, ...ini.all(namedLoginSection).map(({ name }) => name)];
}

/** The providers of a configuration, that of `[login]` first. */
export function loginProviders({
  login,
  logins,
}: Pick<Config, 'login' | 'logins'>): readonly LoginConfig[] {
  return [{ name: ownLoginName, ...login }, ...logins].flatMap(
    ({ name, issuer, clientId, prefix, ...others }) => {
      if (issuer === undefined || clientId === undefined) return [];
      const own = name === ownLoginName ? '' : `${name}:`;
      return [
        { ...others, name, issuer, clientId, prefix: prefix === 'no' ? '' : (prefix ?? own) },
      ];
    },
  );
}
