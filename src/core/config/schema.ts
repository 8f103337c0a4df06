import { accessKeys } from '../../modules/access/section.ts';
import { headersKeys } from '../../modules/headers/section.ts';
import { loginKeys } from '../../modules/login/section.ts';
import { logKeys, pathLogKeys } from '../../modules/logs/section.ts';
import { proxyKeys } from '../../modules/proxy/section.ts';
import { rateKeys } from '../../modules/rates/section.ts';
import { redirectKeys, rewriteKeys } from '../../modules/redirects/section.ts';
import { telemetryKeys } from '../../modules/telemetry/section.ts';
import { escapedPath } from '../values/path.ts';
import { durationText, sizeText } from '../values/units.ts';
import {
  basePath,
  cidr,
  httpsUrl,
  ipAddress,
  link,
  listenAddress,
  listenText,
  mailAddress,
  mountPath,
  nameServer,
  nameServerText,
  natsServer,
  origin,
  originPattern,
  privatePlace,
  questionUrl,
  serverName,
  serverUrl,
  sitePath,
  urlOrFile,
} from './addresses.ts';
import { cookieName, fieldName, fieldValue, hsts, hstsText } from './headers.ts';
import { includePattern } from './include.ts';
import { type FieldsOf, type Keys, list, optional, repeated, single } from './ini-key.ts';
import { isPublicKeySet } from './secrets-keys.ts';
import { connectionsMax, keyRateMax, nodeNameCharactersMax } from './limits.ts';
import {
  type ValueParser,
  anyText,
  choice,
  claimPath,
  duration,
  extensionType,
  extensionTypeText,
  pathBelow,
  plainFileName,
  plainName,
  retention,
  scope,
  shortText,
  size,
  eventType,
  tableName,
  tryPath,
  wholeNumber,
  wordOr,
  yesNo,
} from './values.ts';

/** The highest value of `outbox_entries`. */
const outboxEntriesLimit = 1_000_000_000;

/** Makes the options of a key whose value is a time; `Config` has it in milliseconds. */
function time<const Field extends string>(field: Field) {
  return { field, write: durationText };
}

/** Makes the options of a key whose value is a size; `Config` has it in bytes. */
function bytes<const Field extends string>(field: Field) {
  return { field, write: sizeText };
}

/** What files hold that no mount may serve. */
const privateKey = 'a private key';
const apiKey = 'an API key';
const clusterCredentials = 'the credentials of the cluster';

/** Keys of `[tls]` that the configuration has under the same names. */
export const tlsKeys = {
  http_redirect: single(yesNo, 'yes'),
  hsts: optional(hsts, { write: hstsText }),
};

const acmeProfile: ValueParser<string> = (value) =>
  /^[\w.-]{1,64}$/.test(value)
    ? { value }
    : { refused: 'write the name of a profile, such as `shortlived`' };

/** Keys of `[tls]` that the configuration has in an object of their own. */
export const acmeKeys = {
  acme_directory: single(httpsUrl, 'https://acme-v02.api.letsencrypt.org/directory', {
    field: 'directory',
  }),
  acme_email: optional(mailAddress, { field: 'email' }),
  /** The id of the external account that the ACME account belongs to (RFC 8555 §7.3.4). */
  acme_eab_kid: optional(anyText, { field: 'eabKid' }),
  /** A file with the MAC key of the external account, in base64url. */
  acme_eab_key: optional(anyText, { field: 'eabKeyFile', isPath: true, holds: privateKey }),
  /** The kind of certificates, of those that the ACME server offers. */
  acme_profile: optional(acmeProfile, { field: 'profile' }),
  /** A PEM file with certificate authorities that are trusted besides the well-known ones. */
  acme_ca: optional(anyText, { field: 'caFile', isPath: true }),
  /** Private networks that the ACME server may be in. */
  acme_allow_private: list(cidr, '', { field: 'allowPrivate' }),
  /** A program that changes TXT records, for dns-01. */
  acme_dns_hook: optional(anyText, {
    field: 'dnsHook',
    isPath: true,
    holds: 'the program that changes DNS records',
  }),
  /** A name server that takes changes (RFC 2136), and a file with the key that signs them. */
  acme_dns_server: optional(nameServer, { field: 'dnsServer', write: nameServerText }),
  acme_dns_key: optional(anyText, { field: 'dnsKeyFile', isPath: true, holds: privateKey }),
  /** A URL that says for which other names certificates are obtained when clients ask for them. */
  acme_on_demand: optional(questionUrl, { field: 'onDemandUrl' }),
  /** Orders of such certificates in a minute. */
  acme_on_demand_rate: single(wholeNumber(1, 600), '10', { field: 'onDemandRate' }),
  /** The most such names. */
  acme_on_demand_max: single(wholeNumber(1, 100_000), '1000', { field: 'onDemandMax' }),
  /** How long a handshake waits for such a certificate. */
  acme_on_demand_wait: single(duration('0s', '9s'), '8s', {
    field: 'onDemandWaitMs',
    write: durationText,
  }),
  /** The time after a change until all name servers have it. */
  acme_dns_wait: single(duration('0s', '120s'), '10s', {
    field: 'dnsWaitMs',
    write: durationText,
  }),
};

/**
 * The sections of the ini file (docs/design/configuration.md#the-ini-file) whose keys are fixed:
 * each key with its parser and default, in the order in which `check` prints them. The defaults of
 * `[node] name` and `[server] base` are in `assemble.ts`.
 */
export const sections = {
  server: {
    listen: repeated(listenAddress, '127.0.0.1:8080', { write: listenText }),
    /** The folder of LMDB. */
    data: single(anyText, './data', { isPath: true, holds: 'the data folder' }),
    /** An .ndjson file, imported once into an empty data folder. */
    import: optional(anyText, { isPath: true, holds: 'the page rules to import' }),
    /** A canonical path without a final slash. */
    base: optional(basePath, { write: escapedPath }),
    public_url: optional(origin),
    /** Where the console is: at every origin, nowhere, or at an origin of its own. */
    console: single(wordOr('yes', wordOr('no', origin)), 'yes'),
    trust_proxy: list(cidr, ''),
    proxy_protocol: list(cidr, ''),
    connections_per_address: single(wholeNumber(1, connectionsMax), '2000'),
    workers: single(wordOr('auto', wholeNumber(1, 256)), '1'),
    /** Files with more sections, one for each site; relative to the ini file. */
    include: list(includePattern, ''),
  },
  tls: {
    cert: optional(anyText, { isPath: true }),
    key: optional(anyText, { isPath: true, holds: privateKey }),
    ...tlsKeys,
    ...acmeKeys,
  },
  'tls.<host>': {
    cert: optional(anyText, { isPath: true }),
    key: optional(anyText, { isPath: true, holds: privateKey }),
    acme: single(yesNo, 'no'),
  },
  'disk.<name>': {
    origin: single(originPattern, '*'),
    /** A canonical path prefix that ends in `/`. */
    path: single(mountPath, '/', { write: escapedPath }),
    root: single(anyText, '../site', { isPath: true }),
    index: list(plainFileName, 'index.html'),
    listing: single(yesNo, 'no'),
    dotfiles: single(choice('deny', 'allow'), 'deny'),
    symlinks: single(choice('within', 'deny', 'follow'), 'within'),
    precompressed: single(yesNo, 'yes'),
    /** Whether the server compresses files that have no precompressed ones. */
    compress: single(yesNo, 'yes'),
    /** Whether `/about` answers `about.html`, and `/about.html` redirects to `/about`. */
    clean_urls: single(yesNo, 'no'),
    /** Paths below `root` that are tried for a path without a file. */
    try: list(tryPath, '', { field: 'tryPaths' }),
    /** Media types by extension, before the registered ones. */
    types: list(extensionType, '', { write: extensionTypeText }),
    cache_control: optional(fieldValue),
    /** The path below `root` of the file for paths that no source has; its status is 200. */
    fallback: optional(pathBelow),
    /** The path below `root` of a folder with error pages: `404.html`, `5xx.html`; or `/`. */
    errors: optional(wordOr('/', pathBelow)),
    /** The paths below `root` of files in the formats of `_redirects` and `_headers`. */
    redirects: optional(pathBelow),
    headers_file: optional(pathBelow),
  },
  'proxy.<name>': proxyKeys,
  'headers.<name>': headersKeys,
  'redirect.<name>': redirectKeys,
  'rewrite.<name>': rewriteKeys,
  'access.<name>': accessKeys,
  'rate.<name>': rateKeys,
  login: loginKeys,
  'login.<name>': loginKeys,
  fetch: {
    allow_private: list(privatePlace, ''),
    connect_timeout: single(duration('1ms', '10m'), '3s', time('connectTimeoutMs')),
    timeout: single(duration('1ms', '1d'), '30s', time('timeoutMs')),
    cache: single(size, '256MiB', bytes('cacheBytesMax')),
    max_body: single(size, '64MiB', bytes('bodyBytesMax')),
  },
  auth: {
    anonymous: list(scope, 'render'),
    /** Operations a second for a key without a rate of its own. */
    key_rate: optional(wholeNumber(1, keyRateMax)),
    cors_origins: list(wordOr('*', origin), '*'),
    user_header: optional(fieldName),
    roles_header: optional(fieldName),
    /** A URL, or the path of a file. */
    jwt_jwks: optional(urlOrFile, {
      isPath: true,
      holds: 'the keys of tokens',
      isOpen: isPublicKeySet,
    }),
    jwt_issuer: optional(anyText),
    jwt_audience: optional(anyText),
    jwt_cookie: single(cookieName, 'jwt'),
    /** The names that lead to a claim. */
    jwt_user: single(claimPath, 'sub', { write: dotted }),
    jwt_roles: single(claimPath, 'roles', { write: dotted }),
    /** Private networks that `jwt_jwks` may be in. */
    allow_private: list(cidr, ''),
  },
  'engine.<name>': {
    page: optional(sitePath, { write: escapedPath }),
    script: optional(link),
    reference: optional(link),
  },
  'table.<name>': {
    /** A file with the JSON Schema of a row. */
    schema: optional(anyText, { field: 'schemaFile', isPath: true }),
    key: optional(anyText),
    index: list(anyText, ''),
    search: list(anyText, ''),
    title: optional(anyText),
    owner: optional(anyText),
    read: list(anyText, ''),
    insert: list(anyText, ''),
    edit: list(anyText, ''),
    honeypot: optional(anyText),
    events: optional(anyText),
    /** The URL of the data host that has the rows. */
    host: optional(anyText),
    /** A file with an API key of that host. */
    host_key_file: optional(anyText, { isPath: true, holds: apiKey }),
  },
  'event.<name>': {
    /** A file with the JSON Schema of the data. */
    schema: optional(anyText, { field: 'schemaFile', isPath: true }),
    /** When such an event occurs. */
    summary: optional(anyText),
  },
  webhook: {
    allow_private: list(cidr, ''),
    connect_timeout: single(duration('1ms', '10m'), '3s', time('connectTimeoutMs')),
    timeout: single(duration('1ms', '1d'), '15s', time('timeoutMs')),
    concurrency: single(wholeNumber(1, 10_000), '64'),
    retention: single(duration('1s', '3650d'), '30d', time('retentionMs')),
    retry: list(duration('1ms', '30d'), '5s, 5m, 30m, 2h, 5h, 10h, 14h, 20h, 24h', time('retryMs')),
    /** The address of this machine that deliveries come from. */
    local_address: optional(ipAddress),
  },
  node: {
    role: single(choice('all', 'central', 'replica', 'counter'), 'all'),
    name: optional(shortText(nodeNameCharactersMax)),
    /** The URL of the node whose log this node follows (docs/design/nodes.md). */
    central: optional(serverUrl),
    /** A file with an API key of the centre, of the scope `follow` and bound to `name`. */
    key_file: optional(anyText, { isPath: true, holds: apiKey }),
    /** The most entries, and the most bytes of them, that the outbox of a counter may have. */
    outbox_entries: single(wholeNumber(1, outboxEntriesLimit), '1000000', {
      field: 'outboxEntriesMax',
    }),
    outbox_size: single(size, '4GiB', bytes('outboxBytesMax')),
    /** Where the node is, such as a shop or a branch: the condition `place` of breadcrumbs. */
    place: optional(shortText(253)),
  },
  cluster: {
    /** Servers of NATS JetStream (docs/design/cluster.md); none for a single machine. */
    servers: list(natsServer, ''),
    /** The name of the stream, which all nodes of the cluster share. */
    name: single(plainName, 'waymark'),
    /** A file with the user's credentials as `nsc` makes them, or with the seed of its nkey. */
    credentials: optional(anyText, {
      field: 'credentialsFile',
      isPath: true,
      holds: clusterCredentials,
    }),
    user: optional(anyText),
    password_file: optional(anyText, { isPath: true, holds: clusterCredentials }),
    /** A PEM file with the certificate authorities of the servers. */
    ca: optional(anyText, { field: 'caFile', isPath: true }),
    /** The certificate that this node shows to the servers, with its key. */
    cert: optional(anyText, { field: 'certFile', isPath: true }),
    key: optional(anyText, { field: 'keyFile', isPath: true, holds: privateKey }),
    /** A file with the keys that encrypt the private keys of certificates in the shared log. */
    secrets_key_file: optional(anyText, {
      isPath: true,
      holds: 'the secrets key of the cluster',
    }),
  },
  asset: {
    max: single(size, '256MiB', bytes('bytesMax')),
    /** How long a file stays that no asset refers to any more. */
    retention: single(duration('1s', '3650d'), '30d', time('retentionMs')),
    /** Room on the disk for pictures in other sizes and formats; 0 for none. */
    variants: single(size, '1GiB', bytes('variantsBytesMax')),
  },
  geo: {
    database: optional(anyText, { isPath: true }),
    country_header: optional(fieldName),
    region_header: optional(fieldName),
    city_header: optional(fieldName),
  },
  review: {
    /** Whether a draft needs an approval by a key that has not changed it. */
    required: single(yesNo, 'no'),
  },
  mcp: {
    /** Whether automated tools with a key may use the operations by MCP. */
    enabled: single(yesNo, 'yes'),
  },
  stats: {
    /** How long the visits of pages and breadcrumbs are stored, in days; 0 counts none. */
    retention: single(retention, '90d', {
      field: 'retentionMs',
      write: (ms: number) => (ms === 0 ? 'no' : durationText(ms)),
    }),
  },
  log: logKeys,
  'log.<name>': pathLogKeys,
  telemetry: telemetryKeys,
} as const satisfies Readonly<Record<string, Keys>>;

/** Writes a list of names with dots between them. */
function dotted(names: readonly string[]): string {
  return names.join('.');
}

/** The keys of each kind of section. */
export type Sections = typeof sections;

/** The kinds of section with fixed keys; `[disk.<name>.headers]` contains header fields instead. */
export type SectionKind = keyof Sections;

/** The values of a section by their names in the configuration. */
export type SectionFields<K extends SectionKind> = FieldsOf<Sections[K]>;

/** Parsers of the part after the dot of a section's name. */
export const sectionNames: Readonly<
  Record<
    | 'tls'
    | 'disk'
    | 'proxy'
    | 'headers'
    | 'redirect'
    | 'rewrite'
    | 'access'
    | 'login'
    | 'log'
    | 'rate'
    | 'engine'
    | 'table'
    | 'event',
    ValueParser<string>
  >
> = {
  tls: serverName,
  disk: plainName,
  proxy: plainName,
  headers: plainName,
  redirect: plainName,
  rewrite: plainName,
  access: plainName,
  login: plainName,
  log: plainName,
  rate: plainName,
  engine: plainName,
  table: tableName,
  event: eventType,
};
