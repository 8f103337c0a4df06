import { connectionsMax, keyRateMax, tableCharactersMax } from '../model/limits.ts';
import {
  basePath,
  cidr,
  httpsUrl,
  ipAddress,
  link,
  listenAddress,
  mailAddress,
  mountPath,
  origin,
  serverName,
  sitePath,
  urlOrFile,
} from './addresses.ts';
import { cookieName, fieldName, fieldValue } from './headers.ts';
import { hsts } from './hsts.ts';
import { list, optional, repeated, single, type Keys } from './key.ts';
import {
  anyText,
  choice,
  claimPath,
  duration,
  pathBelow,
  plainFileName,
  plainName,
  scope,
  shortText,
  size,
  wholeNumber,
  wordOr,
  yesNo,
  type ValueParser,
} from './values.ts';

/**
 * Every section and key of the ini file (docs/design/configuration.md#the-ini-file) with its
 * default, in the order in which they are described.
 */
export const sections = {
  server: {
    listen: repeated(listenAddress, '127.0.0.1:8080'),
    data: single(anyText, './data'),
    import: optional(anyText),
    base: optional(basePath),
    public_url: optional(origin),
    trust_proxy: list(cidr, ''),
    connections_per_address: single(wholeNumber(1, connectionsMax), '2000'),
    workers: single(wordOr('auto', wholeNumber(1, 256)), '1'),
  },
  tls: {
    cert: optional(anyText),
    key: optional(anyText),
    http_redirect: single(yesNo, 'yes'),
    hsts: optional(hsts),
    acme_directory: single(httpsUrl, 'https://acme-v02.api.letsencrypt.org/directory'),
    acme_email: optional(mailAddress),
    acme_eab_kid: optional(anyText),
    acme_eab_key: optional(anyText),
    acme_ca: optional(anyText),
    acme_allow_private: list(cidr, ''),
  },
  'tls.<host>': {
    cert: optional(anyText),
    key: optional(anyText),
    acme: single(yesNo, 'no'),
  },
  'disk.<name>': {
    origin: single(wordOr('*', origin), '*'),
    path: single(mountPath, '/'),
    root: single(anyText, '../site'),
    index: list(plainFileName, 'index.html'),
    listing: single(yesNo, 'no'),
    dotfiles: single(choice('deny', 'allow'), 'deny'),
    symlinks: single(choice('within', 'deny', 'follow'), 'within'),
    precompressed: single(yesNo, 'yes'),
    cache_control: optional(fieldValue),
    fallback: optional(pathBelow),
    errors: optional(pathBelow),
  },
  fetch: {
    allow_private: list(cidr, ''),
    connect_timeout: single(duration('1ms', '10m'), '3s'),
    timeout: single(duration('1ms', '1d'), '30s'),
    cache: single(size, '256MiB'),
    max_body: single(size, '64MiB'),
  },
  auth: {
    anonymous: list(scope, 'render'),
    key_rate: optional(wholeNumber(1, keyRateMax)),
    cors_origins: list(wordOr('*', origin), '*'),
    user_header: optional(fieldName),
    roles_header: optional(fieldName),
    jwt_jwks: optional(urlOrFile),
    jwt_issuer: optional(anyText),
    jwt_audience: optional(anyText),
    jwt_cookie: single(cookieName, 'jwt'),
    jwt_user: single(claimPath, 'sub'),
    jwt_roles: single(claimPath, 'roles'),
    allow_private: list(cidr, ''),
  },
  'engine.<name>': { page: optional(sitePath), script: optional(link), reference: optional(link) },
  'table.<name>': { schema: optional(anyText) },
  webhook: {
    allow_private: list(cidr, ''),
    connect_timeout: single(duration('1ms', '10m'), '3s'),
    timeout: single(duration('1ms', '1d'), '15s'),
    concurrency: single(wholeNumber(1, 10_000), '64'),
    retention: single(duration('1s', '3650d'), '30d'),
    retry: list(duration('1ms', '30d'), '5s, 5m, 30m, 2h, 5h, 10h, 14h, 20h, 24h'),
    local_address: optional(ipAddress),
  },
  node: {
    role: single(choice('all', 'central', 'counter'), 'all'),
    name: optional(shortText(253)),
    place: optional(shortText(253)),
  },
  geo: {
    database: optional(anyText),
    country_header: optional(fieldName),
    region_header: optional(fieldName),
    city_header: optional(fieldName),
  },
  log: {
    level: single(choice('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'), 'info'),
    access: single(yesNo, 'yes'),
    format: single(choice('pretty', 'json', 'combined'), 'pretty'),
    file: optional(anyText),
    explain: single(yesNo, 'no'),
  },
} as const satisfies Readonly<Record<string, Keys>>;

/** The keys of each kind of section. */
export type Sections = typeof sections;

/**
 * The kinds of section that have keys of their own; `[disk.<name>.headers]` holds header fields
 * instead.
 */
export type SectionKind = keyof Sections;

/** What the part after the dot of a section's name may be. */
export const sectionNames: Readonly<
  Record<'tls' | 'disk' | 'engine' | 'table', ValueParser<string>>
> = {
  tls: serverName,
  disk: plainName,
  engine: plainName,
  table: shortText(tableCharactersMax),
};
