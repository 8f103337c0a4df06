import type { KeyText } from '../../src/core/config/ini-key.ts';
import type { Sections } from '../../src/core/config/schema.ts';
import { accessTexts } from '../../src/modules/access/section.ts';
import { headersTexts } from '../../src/modules/headers/section.ts';
import { loginTexts } from '../../src/modules/login/section.ts';
import { logTexts, pathLogTexts } from '../../src/modules/logs/section.ts';
import { proxyTexts } from '../../src/modules/proxy/section.ts';
import { rateTexts } from '../../src/modules/rates/section.ts';
import { redirectTexts, rewriteTexts } from '../../src/modules/redirects/section.ts';
import { telemetryTexts } from '../../src/modules/telemetry/section.ts';

type Texts = { readonly [S in keyof Sections]: { readonly [K in keyof Sections[S]]: KeyText } };

/**
 * A text for each key of `config/schema.ts`: a key without one does not compile. A test validates
 * the examples, and compares `restart` with `config/restart.ts`.
 */
export const keyTexts: Texts = {
  server: {
    listen: {
      about:
        'The addresses to listen on: `host:port`, `https://host:port` for TLS, or `unix:/path`. Several lines are `listen[]`.',
      example: '0.0.0.0:8080',
      restart: true,
    },
    include: {
      about:
        'Files with more sections, for example one for each site; `*` stands for any text in the name of a file.',
      example: 'sites/*.ini',
    },
    data: {
      about: 'The folder of the database: page rules, their history, keys, events.',
      example: '/var/lib/waymark',
      restart: true,
    },
    import: {
      about: 'An NDJSON file that the server imports once, while the data folder is empty.',
      example: 'demo.ndjson',
      restart: true,
    },
    base: {
      about: 'A prefix before `/svc1`, for a site that has pages of its own there.',
      example: '/waymark',
    },
    public_url: {
      about: "The site's own origin, if a proxy in front of Waymark hides it.",
      example: 'https://www.example.com',
    },
    console: {
      about:
        'Where the console is: at every origin (`yes`), nowhere (`no`), or at an origin of its own.',
      example: 'https://console.example.com',
    },
    trust_proxy: {
      about: 'Networks of the proxies whose Forwarded and X-Forwarded-* fields the server trusts.',
      example: '10.0.0.0/8',
    },
    proxy_protocol: {
      about:
        'Networks of load balancers whose connections begin with a header of the PROXY protocol, ' +
        'version 1 or 2, that names the client. A connection from there without it is closed.',
      example: '10.0.0.0/8',
    },
    connections_per_address: {
      about:
        'How many connections one address may have at a time, in each process. Trusted proxies have no such limit.',
      example: '500',
    },
    workers: {
      about:
        'How many processes share the ports and the database; `auto` is one for each core. Each counts limits separately.',
      example: 'auto',
      restart: true,
    },
  },
  tls: {
    cert: {
      about:
        'A PEM file with the certificate and its issuers, for clients that name no host or a host without a section.',
      example: '/etc/waymark/example.com.pem',
      restart: true,
    },
    key: {
      about: 'A PEM file with its private key, without a passphrase.',
      example: '/etc/waymark/example.com.key',
      restart: true,
    },
    http_redirect: {
      about: 'Whether requests without TLS are redirected to https.',
      example: 'no',
    },
    hsts: {
      about:
        'How long browsers use https only (Strict-Transport-Security). `subdomains` and `preload` may follow.',
      example: '365d subdomains',
    },
    acme_directory: {
      about: "The address of the ACME server's directory; by default that of Let's Encrypt.",
      example: 'https://ca.example.com/acme/directory',
    },
    acme_email: {
      about: 'An address for warnings of the authority.',
      example: 'admin@example.com',
    },
    acme_eab_kid: {
      about:
        'The identifier of the customer that the account belongs to (External Account Binding).',
      example: 'customer-7',
    },
    acme_eab_key: {
      about: 'A file with the key of that customer, in base64url.',
      example: '/etc/waymark/eab.key',
    },
    acme_profile: {
      about:
        'The kind of certificates, if the authority offers several (ACME profiles): `shortlived` ' +
        "of Let's Encrypt is valid for six days.",
      example: 'shortlived',
    },
    acme_ca: {
      about: 'A PEM file with root certificates for an ACME server in your own network.',
      example: '/etc/waymark/ca.pem',
    },
    acme_allow_private: {
      about: 'Private networks that the ACME server may be in.',
      example: '10.0.0.0/8',
    },
    acme_dns_hook: {
      about:
        'A program that proves control of the names by TXT records (dns-01), also of wildcards. ' +
        'It gets `present` or `cleanup`, the name and the value as arguments, and as ' +
        '`ACME_ACTION`, `ACME_NAME` and `ACME_VALUE`, and has 60 s.',
      example: '/usr/local/bin/dns-hook',
    },
    acme_dns_server: {
      about:
        'The primary name server, which takes changes of these records instead (RFC 2136). It may ' +
        'be in a private network.',
      example: '192.0.2.1:53',
    },
    acme_dns_key: {
      about:
        'A file with the key that signs the changes (TSIG), as `tsig-keygen -a hmac-sha256 waymark` ' +
        'writes it.',
      example: '/etc/waymark/tsig.key',
    },
    acme_dns_wait: {
      about: 'How long the server waits until all name servers have the record.',
      example: '60s',
    },
    acme_on_demand: {
      about:
        'A URL that says for which other names certificates are obtained when clients ask for ' +
        'them. It gets the name as `?domain=` and answers 200 for a name that may have one.',
      example: 'http://127.0.0.1:3000/may-have-certificate',
    },
    acme_on_demand_rate: {
      about: 'The most orders of such certificates in a minute.',
      example: '3',
    },
    acme_on_demand_max: {
      about: 'The most such names. Beyond it, the least recently used ones are dropped.',
      example: '200',
    },
    acme_on_demand_wait: {
      about: 'How long a handshake waits for such a certificate. It arrives also after that.',
      example: '5s',
    },
  },
  'tls.<host>': {
    cert: {
      about:
        'The certificate for this name; `[tls.*.example.com]` is for all names one label below.',
      example: '/etc/waymark/shop.pem',
      restart: true,
    },
    key: { about: 'Its private key.', example: '/etc/waymark/shop.key', restart: true },
    acme: {
      about: 'Whether the server orders and renews the certificate, instead of `cert` and `key`.',
      example: 'yes',
    },
  },
  'disk.<name>': {
    origin: {
      about:
        'The origin that the mount serves; `https://*.example.com` for all ' +
        'subdomains, `*` for every origin.',
      example: 'https://www.example.com',
    },
    path: {
      about: 'The path of the URL that the mount serves; the longest one takes precedence.',
      example: '/assets/',
    },
    root: { about: 'The folder on the disk.', example: '/srv/www' },
    index: {
      about: 'Names of the file that answers for a folder, the first one that exists.',
      example: 'index.html',
    },
    listing: {
      about: 'Whether a folder without an index is listed, as a page or as JSON.',
      example: 'yes',
    },
    dotfiles: {
      about: 'Whether hidden files such as `.env` get 404 (`deny`) or are served (`allow`).',
      example: 'allow',
    },
    symlinks: {
      about:
        'Whether symbolic links work within the folder only (`within`), not at all (`deny`), or everywhere (`follow`).',
      example: 'follow',
    },
    precompressed: {
      about: 'Whether `app.js.zst`, `app.js.br` or `app.js.gz` is sent in place of `app.js`.',
      example: 'no',
    },
    compress: {
      about:
        'Whether text is compressed for clients that accept it, if it has no precompressed file.',
      example: 'no',
    },
    clean_urls: {
      about:
        'Whether `/about` answers `about.html`, or the index of the folder `about`, and their other paths redirect to it.',
      example: 'yes',
    },
    try: {
      about:
        'Paths below the root that are tried in order for a path without a file; `{path}` is the path of the URL.',
      example: '{path}.htm, app.html',
    },
    types: {
      about: 'Media types of extensions, before the registered ones.',
      example: 'geojson=application/geo+json',
    },
    cache_control: {
      about: 'The Cache-Control of its answers.',
      example: 'public, max-age=31536000, immutable',
    },
    fallback: {
      about: 'A file below the root that answers with 200 for paths that no source has.',
      example: 'index.html',
    },
    errors: {
      about:
        'A folder below the root with error pages: `404.html`, `502.html`, `5xx.html`, and `404.de.html` for a language; `/` is the root itself.',
      example: 'errors',
    },
    redirects: {
      about:
        'A file below the root with redirects in the format of Netlify and Cloudflare Pages; it is not served.',
      example: '_redirects',
    },
    headers_file: {
      about:
        'A file below the root with header fields in the format of Netlify and Cloudflare Pages; it is not served.',
      example: '_headers',
    },
  },
  'proxy.<name>': proxyTexts,
  'headers.<name>': headersTexts,
  'redirect.<name>': redirectTexts,
  'rewrite.<name>': rewriteTexts,
  'access.<name>': accessTexts,
  'rate.<name>': rateTexts,
  login: loginTexts,
  'login.<name>': loginTexts,
  fetch: {
    allow_private: {
      about:
        'Private networks that sources may be in, and unix sockets that they may be on, such as ' +
        '`unix:/run/app.sock`. By default none, so that no page rule can expose your network.',
      example: '127.0.0.0/8, unix:/run/app.sock',
    },
    connect_timeout: { about: 'How long connecting to a source may take.', example: '5s' },
    timeout: {
      about: 'How long a source may take to answer, and may pause within its answer.',
      example: '60s',
    },
    cache: { about: 'Disk space for cached content; `0` disables the cache.', example: '1GiB' },
    max_body: { about: 'The longest content of a request that is passed on.', example: '256MiB' },
  },
  auth: {
    anonymous: {
      about: 'The scopes of a caller without a key. Visitors need `render` only.',
      example: 'render',
    },
    key_rate: {
      about: 'Operations a second for a key without a rate of its own; by default any number.',
      example: '1000',
    },
    cors_origins: {
      about: 'Origins whose pages may call the operations that the anonymous scopes permit.',
      example: 'https://app.example.com',
    },
    user_header: {
      about: 'The field in which a trusted proxy names the signed-in user.',
      example: 'X-User',
    },
    roles_header: {
      about: 'The field in which a trusted proxy names the roles, separated by commas.',
      example: 'X-Roles',
    },
    jwt_jwks: {
      about: 'The public keys of tokens: a URL, or a file in the format of RFC 7517.',
      example: 'https://id.example.com/jwks.json',
    },
    jwt_issuer: { about: 'The `iss` that a token must have.', example: 'https://id.example.com/' },
    jwt_audience: { about: 'The `aud` that a token must have.', example: 'shop' },
    jwt_cookie: { about: 'The cookie that may contain the token.', example: 'session' },
    jwt_user: {
      about: "The claim with the user's name; a dot leads to a member.",
      example: 'preferred_username',
    },
    jwt_roles: { about: 'The claim with the roles.', example: 'realm_access.roles' },
    allow_private: {
      about: 'Private networks that the server of `jwt_jwks` may be in.',
      example: '10.20.0.0/16',
    },
  },
  'engine.<name>': {
    page: { about: 'The path of the generic page that shows the engine.', example: '/frame.html' },
    script: { about: 'A module that exports `render`.', example: '/assets/engine.js' },
    reference: { about: 'The address of its documentation.', example: '/docs/engine' },
  },
  'event.<name>': {
    schema: {
      about: 'A file with the JSON Schema of the data; an event that breaks it is refused.',
      example: 'events/order-shipped.json',
    },
    summary: { about: 'When such an event occurs.', example: 'An order has left the house.' },
  },
  'table.<name>': {
    schema: { about: 'A file with the JSON Schema of a row.', example: 'tables/letters.json' },
    key: { about: 'The field that identifies a row; its values are unique.', example: 'sku' },
    index: { about: 'Fields that lists may filter and sort by.', example: 'price, shop' },
    search: { about: 'Fields in which lists find text.', example: 'name, description' },
    title: { about: 'The field that stands for a row in other tables.', example: 'name' },
    owner: { about: 'The field with the name of the user who owns a row.', example: 'customer' },
    read: {
      about: 'Who may read rows: scopes (`record.read` by default), `anonymous`, `user`.',
      example: 'anonymous',
    },
    insert: {
      about: 'Who may insert rows: scopes (`record.write` by default), `anonymous`, `user`.',
      example: 'anonymous',
    },
    edit: {
      about:
        'Who may edit and delete rows: scopes (`record.write` by default), `anonymous`, `user`.',
      example: 'user',
    },
    honeypot: {
      about: 'The name of a form field that people leave empty.',
      example: 'website',
    },
    events: {
      about: 'Events that a change of a field raises.',
      example: 'stock.level_changed: stock crosses 0',
    },
    host: {
      about: 'The data host that has the rows, in place of this server.',
      example: 'https://data.example.com/svc1/ws',
    },
    host_key_file: {
      about: 'A file with an API key of the data host.',
      example: 'data-host.key',
    },
  },
  webhook: {
    allow_private: { about: 'Private networks that hooks may call.', example: '127.0.0.0/8' },
    connect_timeout: { about: 'How long connecting to a receiver may take.', example: '5s' },
    timeout: { about: 'How long a receiver may take to answer.', example: '30s' },
    concurrency: { about: 'How many deliveries run at a time.', example: '128' },
    retention: { about: 'How long events and their deliveries are stored.', example: '90d' },
    retry: { about: 'The delays before each further attempt.', example: '10s, 1m, 10m, 1h' },
    local_address: {
      about: 'The address of this machine that deliveries come from, which receivers may check.',
      example: '192.0.2.7',
    },
  },
  node: {
    role: {
      about: 'The role of this machine among several.',
      example: 'counter',
      restart: true,
    },
    name: {
      about: 'The name of this machine; by default its hostname.',
      example: 'boathouse',
      restart: true,
    },
    central: {
      about: 'The URL of the Waymark whose log this one copies and follows.',
      example: 'https://www.example.com',
      restart: true,
    },
    key_file: {
      about:
        'A file with an API key of the centre, with the scope `follow` and bound to `name`. The server ' +
        'reads it again when it connects.',
      example: 'central.key',
      restart: true,
    },
    outbox_entries: {
      about:
        'The most entries that the outbox of a counter has, waiting or refused. A full outbox ' +
        'refuses further events and rows with 503.',
      example: '100000',
      restart: true,
    },
    outbox_size: {
      about: 'The most bytes that they have together.',
      example: '500MiB',
      restart: true,
    },
    place: {
      about: 'Where the machine is, such as a branch: the condition `place` of breadcrumbs.',
      example: 'harbour',
    },
  },
  cluster: {
    servers: {
      about:
        'The servers of NATS JetStream that have the log of the cluster, version 2.12 or newer.',
      example: 'nats://10.0.0.1:4222, nats://10.0.0.2:4222, nats://10.0.0.3:4222',
      restart: true,
    },
    name: {
      about: 'The name of the stream that the nodes of the cluster share.',
      example: 'shop',
      restart: true,
    },
    credentials: {
      about: "A file with the user's credentials (`.creds`), or with the seed of its nkey.",
      example: '/etc/waymark/nats.creds',
      restart: true,
    },
    user: {
      about: 'The name of the user, instead of `credentials`.',
      example: 'waymark',
      restart: true,
    },
    password_file: {
      about: 'A file with the password of `user`.',
      example: '/etc/waymark/nats.password',
      restart: true,
    },
    ca: {
      about:
        'A PEM file with the certificate authorities of the servers. With it, connections use TLS.',
      example: '/etc/waymark/nats-ca.pem',
      restart: true,
    },
    cert: {
      about: 'A PEM file with the certificate that this machine shows to the servers.',
      example: '/etc/waymark/node.pem',
      restart: true,
    },
    key: {
      about: 'A PEM file with its private key.',
      example: '/etc/waymark/node.key',
      restart: true,
    },
    secrets_key_file: {
      about:
        'A file with the keys that encrypt what the machines share in secret, such as the private keys ' +
        'of certificates: 32 bytes in base64, one key a line. The first encrypts, all decrypt.',
      example: '/etc/waymark/cluster.key',
      restart: true,
    },
  },
  geo: {
    database: {
      about: "A file in MaxMind's format that says where addresses are.",
      example: 'geo/countries.mmdb',
    },
    country_header: {
      about: "The field in which a trusted proxy names the visitor's country.",
      example: 'CF-IPCountry',
    },
    region_header: {
      about: "The field in which a trusted proxy names the visitor's region.",
      example: 'CF-Region-Code',
    },
    city_header: {
      about: "The field in which a trusted proxy names the visitor's city.",
      example: 'CF-IPCity',
    },
  },
  asset: {
    max: {
      about: 'The longest file that can be uploaded as an [asset](../how-to/assets.md).',
      example: '1GiB',
    },
    retention: {
      about:
        'How long the file of an asset stays after the last asset that refers to it is deleted or replaced: an undo within this time finds it.',
      example: '90d',
    },
    variants: {
      about:
        'The room on the disk for [pictures in other sizes and formats](../how-to/assets.md#pictures-in-other-sizes); those that were not used for the longest time go. With 0, every picture is sent as it was uploaded.',
      example: '5GiB',
    },
  },
  review: {
    required: {
      about:
        'Whether a [draft](../how-to/drafts.md) is published only after an approval by a key that has not changed it.',
      example: 'yes',
    },
  },
  mcp: {
    enabled: {
      about:
        'Whether automated tools may use the server by the [Model Context Protocol](../how-to/mcp.md) at `/svc1/mcp`, each with an API key.',
      example: 'no',
    },
  },
  stats: {
    retention: {
      about:
        'How many days the [visits](../how-to/visits.md) of pages and breadcrumbs are stored; `no` counts none.',
      example: '400d',
    },
  },
  log: logTexts,
  'log.<name>': pathLogTexts,
  telemetry: telemetryTexts,
};
