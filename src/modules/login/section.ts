import { sitePath } from '../../core/config/addresses.ts';
import {
  type KeyText,
  type ParsedKeys,
  list,
  optional,
  single,
} from '../../core/config/ini-key.ts';
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
import { escapedPath } from '../../core/values/path.ts';
import { durationText } from '../../core/values/units.ts';

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
export const loginKeys = {
  issuer: optional(issuerUrl),
  client_id: optional(anyText),
  client_secret: optional(anyText, { isSecret: true }),
  client_auth: single(choice('basic', 'post'), 'basic'),
  scopes: list(anyText, 'openid'),
  /** The names that lead to a claim. */
  user: single(claimPath, 'sub', { write: (path) => path.join('.') }),
  roles: single(claimPath, 'roles', { write: (path) => path.join('.') }),
  lifetime: single(duration('1m', '30d'), '12h', { field: 'lifetimeMs', write: durationText }),
  signed_out: single(sitePath, '/', { write: escapedPath }),
  title: optional(anyText),
  prefix: optional(wordOr('no', namePrefix)),
  console_roles: list(anyText, ''),
  console_scopes: list(personScope, 'admin'),
};

/** What the reference says about each key. */
export const loginTexts: Readonly<Record<keyof typeof loginKeys, KeyText>> = {
  issuer: {
    about:
      'The OpenID Connect provider where visitors sign in. Its addresses are read from ' +
      '`/.well-known/openid-configuration` below it.',
    example: 'https://id.example.com/realms/staff',
  },
  client_id: { about: 'The name of this server at the provider.', example: 'www' },
  client_secret: {
    about:
      'Its secret there, or a variable with it, such as `${LOGIN_SECRET}`; without one, the ' +
      'server is a public client.',
    example: '4f1eZ0s2mB',
  },
  client_auth: {
    about:
      'How the server sends its secret: `basic` in the field Authorization, or `post` in a form.',
    example: 'post',
  },
  scopes: {
    about: 'What the server asks the provider for; `openid` is always among it.',
    example: 'openid email profile',
  },
  user: {
    about: "The claim with the user's name; a dot leads to a member.",
    example: 'preferred_username',
  },
  roles: { about: 'The claim with the roles.', example: 'groups' },
  lifetime: {
    about: 'How long a session lasts. Then the browser goes to the provider again.',
    example: '8h',
  },
  signed_out: { about: 'The path to which a browser comes after signing out.', example: '/bye' },
  title: {
    about:
      'The name of the provider on the page where visitors choose between several; by default ' +
      'the host of its issuer.',
    example: 'Staff',
  },
  prefix: {
    about:
      'The text before the names of its users and roles, or `no` for none. By default the name ' +
      'of the section and a colon, such as `staff:ann`, and none for `[login]`: two providers ' +
      'may have an `ann` or a role `admin`, who must not pass for each other.',
    example: 'no',
  },
  console_roles: {
    about: 'Roles of which one lets people into the console without an API key.',
    example: 'editors, admins',
  },
  console_scopes: {
    about: 'What they may do there, as the scopes of a key.',
    example: 'read, design, publish',
  },
};

type ParsedLogin = ParsedKeys<typeof loginKeys>;

interface ParsedLogins {
  readonly login: ParsedLogin;
  /** The sections `[login.<name>]`. */
  readonly logins: readonly ParsedLogin[];
}

/** Finds a provider without a client, and keys without a provider. */
export function loginProblems({ login, logins }: ParsedLogins): readonly LineProblem[] {
  const own = logins.filter(({ name }) => name === ownLoginName);
  return [
    ...providerProblems(login, false),
    ...logins.flatMap((one) => providerProblems(one, true)),
    ...own.map(({ line }) => ({
      line,
      message: `[login.${ownLoginName}] needs another name: that is the name of [login] itself`,
    })),
  ];
}

/** The name of the provider of `[login]` itself. */
export const ownLoginName = 'login';

function providerProblems(section: ParsedLogin, isNamed: boolean): readonly LineProblem[] {
  const { values, lines, line, isValid } = section;
  if (!isValid) return [];
  if (values.issuer === undefined) {
    if (isNamed) return [{ line, message: `[login.${section.name}] needs \`issuer\`` }];
    const { client_id, client_secret } = values;
    const given = Object.entries({ client_id, client_secret });
    const key = given.find(([, value]) => value !== undefined)?.[0];
    if (key === undefined) return [];
    return [{ line: lines.get(key)?.[0] ?? line, message: `\`${key}\` needs \`issuer\`, too` }];
  }
  return values.client_id === undefined
    ? [{ line: lines.get('issuer')?.[0] ?? line, message: '`issuer` needs `client_id`, too' }]
    : [];
}

/** The names of the providers. */
export function providerNames({ login, logins }: ParsedLogins): readonly string[] {
  const own = login.values.issuer === undefined ? [] : [ownLoginName];
  return [...own, ...logins.map(({ name }) => name)];
}
