import assert from 'node:assert/strict';
import { test } from 'node:test';
import { join } from 'node:path';
import fc from 'fast-check';
import type { Config } from '../../../src/core/config/config.ts';
import { configJson, describeConfig } from '../../../src/core/config/describe.ts';
import { sectionKinds } from '../../../src/core/config/ini-section.ts';
import { iniSections } from '../../../src/sections.ts';
import { makeFolder, requireIni } from './folder.ts';
import { assembleConfig, parseIni, sections } from '../../ini.ts';

const env = { ANY: 'a ${ANY} ; "b" \\ \'' };
const surroundings = {
  file: '/etc/waymark/server.ini',
  folder: '/etc/waymark',
  cores: 4,
  hostName: "Bob's machine; #1",
  definitions: new Map([
    [
      'order-lines',
      { name: 'order-lines', schema: { type: 'object', network: 1, text: 'x', prefixBits: 2 } },
    ],
  ]),
};

/** The configuration of a valid ini text; the files that it names are not read. */
function assemble(text: string): Config {
  const ini = parseIni(text, { env });
  assert.deepEqual(ini.problems, [], text);
  return assembleConfig(ini, surroundings);
}

/** Quotes any text for an ini file. */
const written = (text: string) => JSON.stringify(text.replaceAll('${', () => '$${'));
const fieldText = fc.stringMatching(/^[\t -~]{0,30}$/);
const freeText = fc
  .array(
    fc.oneof(
      fc.constantFrom('${', '$', '}', '"', "'", '\\', ';', '#', '=', ' ', '[', ','),
      fc.string({ unit: 'grapheme', maxLength: 3 }),
    ),
    { maxLength: 8 },
  )
  .map((pieces) => pieces.join(''))
  .filter((text) => !/[^\t\x20-\x7e\x80-\uffff]/.test(text) && text.isWellFormed());
const pathText = fc
  .stringMatching(/^[a-z0-9%?#;é€ *"'$({})-]{1,12}$/u)
  .map((name) => encodeURI(`/${name}x`).replace(/[?#]/g, encodeURIComponent));
const listOf = (item: fc.Arbitrary<string>) => fc.array(item, { maxLength: 4 });
const bool = fc.constantFrom('yes', 'no');
const time = fc.tuple(fc.integer({ min: 1, max: 9 }), fc.constantFrom('ms', 's', 'm'));

const iniText = fc
  .record({
    hsts: fc.constantFrom('0s', '90m', '30d subdomains', '3650d, subdomains, preload', ''),
    listen: fc.uniqueArray(
      fc.constantFrom(':80', 'https://[::1]:8080', 'a.b:1', 'unix:run/w s.sock'),
      {
        minLength: 1,
      },
    ),
    data: freeText.filter((text) => text.trim() !== ''),
    base: pathText,
    workers: fc.constantFrom('auto', '7'),
    networks: listOf(fc.constantFrom('10.0.0.0/8', '::1', 'fd00::/8', '::ffff:1.2.3.4')),
    mount: pathText,
    page: pathText,
    cacheControl: fieldText,
    fields: listOf(fieldText),
    fieldName: fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,8}$/).map((name) => `X-${name}`),
    index: listOf(fc.constantFrom('index.html', "it's.htm", 'café.html', '#;.html')),
    flags: fc.array(bool, { minLength: 5, maxLength: 5 }),
    bytes: fc.nat(),
    retry: listOf(time.map(([count, unit]) => `${count}${unit}`)),
    scopes: listOf(fc.constantFrom('render', 'read', 'admin')),
    origins: listOf(fc.constantFrom('*', 'https://a.example', 'http://[::1]:81')),
    nodeName: freeText,
    issuer: freeText,
  })
  .map((given) => {
    const [listing, precompressed, redirect, access, explain] = given.flags;
    return `[server]
${given.listen.map((listen) => `listen[] = ${listen}`).join('\n')}
data = ${written(given.data)}
base = ${written(given.base)}
trust_proxy = ${given.networks.join(', ')}
proxy_protocol = ${given.networks.join(', ')}
workers = ${given.workers}
[tls]
http_redirect = ${String(redirect)}
hsts = ${given.hsts}
acme_directory = https://ca.example/dir?a='b'
acme_email = admin@a.example
acme_eab_kid = ${written(given.data)}
acme_eab_key = other \${ANY}
acme_ca = ${written(given.data)}
acme_allow_private = ${given.networks.join(', ')}
acme_dns_server = [fd00::1]:5353
acme_dns_key = tsig.key
acme_dns_wait = 0s
acme_on_demand = https://a.example/ask?a=b
acme_on_demand_wait = 0s
[tls.www.a.example]
acme = yes
[tls.*.a.example]
cert = ${written(given.data)}
key = other \${ANY}
[disk.a]
path = ${written(given.mount)}
index = ${written(given.index.join(' '))}
listing = ${String(listing)}
precompressed = ${String(precompressed)}
cache_control = ${written(given.cacheControl)}
[disk.a.headers]
${given.fields.map((field) => `${JSON.stringify(`${given.fieldName}[]`)} = ${written(field)}`).join('\n')}
[disk.b]
origin = https://b.example
[proxy.app]
source[] = srv+http://_app._tcp.example.com
source[] = http://127.0.0.1:3000/a
weight = 3, 1
balance = cookie
retries = 0
resolve = ${String(listing)}
health = "/status?a=1;b"
health_interval = 2s
http_version = 2
proxy_protocol = v2
mirror = http://127.0.0.1:3003
[fetch]
cache = ${given.bytes}
[auth]
anonymous = ${given.scopes.join(' ')}
cors_origins = ${given.origins.join(' ')}
key_rate = 250
jwt_jwks = https://id.example/keys
jwt_issuer = ${written(given.issuer)}
[rate.a]
path = /a/*, *.js
rate = 17/h
burst = 7
by = field:X-Plan
exempt = ${given.networks.join(', ')}
[login]
issuer = https://id.example/realms/a
client_id = ${written(given.data)}
client_secret = ${written(given.issuer)}
client_auth = post
roles = realm_access.roles
lifetime = 90m
signed_out = ${written(given.page)}
title = ${written(given.data)}
console_scopes = ${given.scopes.join(' ')}
[login.guests]
issuer = https://id.example/realms/b
client_id = b
prefix = no
[engine.x]
page = ${written(given.page)}
script = /a.js?b=$\${c}
[table.order-lines]
schema = x.json
[webhook]
retry = ${given.retry.join(', ')}
local_address = 2001:db8::7
[node]
name = ${written(given.nodeName)}
[cluster]
servers = a, tls://[fd00::5]:4223
user = ${written(given.nodeName)}
[log]
access = ${String(access)}
explain = ${String(explain)}
format = json
fields = method, source_ms
redact = token
syslog = udp://[::1]:5514
file = access.log
rotate_size = 10MiB
rotate_age = 1d
[log.health]
path = /health, /live*
access = no
[telemetry]
endpoint = http://127.0.0.1:4318/
sample = .25
trust = ${given.networks.join(', ')}
headers = "a=b%2C%20c, x-d=e f"
`;
  });

test('`check` prints an ini text that gives the same configuration', () => {
  fc.assert(
    fc.property(iniText, (text) => {
      const config = assemble(text);
      assert.deepEqual(assemble(describeConfig(config)), config);
    }),
    { numRuns: 500 },
  );
});

test('`check` prints every section and every key, also those with their default', () => {
  const text = describeConfig(
    assemble(
      '[tls.a.b]\ncert=c\nkey=k\n[disk.a]\n[proxy.a]\nsource=http://a\n[headers.a]\nX=y\n[redirect.a]\nto=/x\n[access.a]\nallow=::1\n[rate.a]\nrate=1/m\n' +
        '[rewrite.a]\nmatch=^/a$\nto=/b\n[login.a]\nissuer=https://a\nclient_id=b\n[log.a]\npath=/a\naccess=no\n[engine.a]\n[table.order-lines]\nschema=s\n[event.order.shipped]\nschema=e',
    ),
  );
  const described = parseIni(text, { env });
  const parsed = sectionKinds(iniSections).flatMap(({ owner }) => described.all(owner));
  const keys = parsed.flatMap(({ lines }) => [...lines.keys()]);
  // The sections of modules have kinds of their own, once their modules are loaded.
  const { 'module.<name>': _, ...fixed } = sections;
  const expected = Object.values(fixed).flatMap((section) => Object.keys(section));
  assert.deepEqual(keys.toSorted(), expected.toSorted());
});

test('`check` quotes only values that need it', () => {
  const text = describeConfig(
    assemble(
      `[server]
data = /srv/data
[disk.a]
index = a.html b.html
cache_control = max-age=60
[disk.a.headers]
X-A = nosniff
X-B[] = 1
x-b[] = "2; 3"`,
    ),
  );
  assert.match(text, /^listen = 127\.0\.0\.1:8080\ndata = \/srv\/data\nimport =\n/m);
  assert.match(text, /^index = a\.html, b\.html\n/m);
  assert.match(text, /^cache_control = "max-age=60"\n/m);
  assert.match(text, /^\[disk\.a\.headers\]\nX-A = nosniff\n"?X-B\[\]"? = 1\nx-b\[\] = "2; 3"\n/m);
  assert.match(text, /^timeout = 15s\nconcurrency = 64\nretention = 30d\nretry = 5s, 5m, 30m, 2h/m);
  assert.match(text, /^cache = 256MiB\nmax_body = 64MiB\n/m);
});

test('`check` prints an equal configuration for the ini file of the demo site', async (context) => {
  const file = join(import.meta.dirname, '../../../conf/server.ini');
  const config = await requireIni(file);
  const folder = await makeFolder(context, { 'server.ini': describeConfig(config) });
  const again = await requireIni(join(folder, 'server.ini'));
  assert.deepEqual({ ...again, file: config.file }, config);
});

test('`check --json` prints networks as text, unset keys as null, and schemas unchanged', () => {
  const json = configJson(
    assemble(
      `[server]
trust_proxy = 10.0.0.0/8
[fetch]
allow_private = ::1
[auth]
allow_private = 10.1.0.0/16
[tls]
acme_allow_private = fd00::/8
[webhook]
allow_private = 127.0.0.1
[table.order-lines]
schema = x.json`,
    ),
  ) as unknown as Config;
  assert.deepEqual(JSON.parse(JSON.stringify(json)), json);
  assert.deepEqual(json.server.trustProxy, ['10.0.0.0/8']);
  assert.deepEqual(json.fetch.allowPrivate, ['::1']);
  assert.deepEqual(json.auth.allowPrivate, ['10.1.0.0/16']);
  assert.deepEqual(json.tls.acme.allowPrivate, ['fd00::/8']);
  assert.deepEqual(json.webhook.allowPrivate, ['127.0.0.1']);
  assert.equal(json.server.import, null);
  assert.deepEqual(json.tables[0]?.definition, surroundings.definitions.get('order-lines'));
});

test('`check` prints [variables], which give the same configuration', () => {
  const text = '[variables]\nNAME = "a \\"b\\" ; é"\n[node]\nname = ${NAME}\n';
  const config = assemble(text);
  assert.equal(config.variables.NAME, 'a "b" ; é');
  assert.deepEqual(assemble(describeConfig(config)), config);
});

test('`check` prints redirects and rewrites that are read as they were', async (context) => {
  const files = {
    'server.ini': `[server]
[disk.a]
root = site
redirects = _redirects
headers_file = _headers
[redirect.a]
match = "^/a/(\\\\d+)$"
to = /b/$1?x={query.x}
[redirect.b]
file = moved.txt
[redirect.c]
trailing_slash = off
[rewrite.a]
match = "^/c/(.*)$"
to = /d/$1
`,
    'site/_redirects': '/x /y\n',
    'site/_headers': '/*\n  X-A: b\n',
    'moved.txt': '/m /n\n',
  };
  const folder = await makeFolder(context, files);
  const config = await requireIni(join(folder, 'server.ini'));
  assert.equal(config.redirects[0]?.match, '^/a/(\\d+)$');
  assert.equal(config.disk[0]?.redirectsText, '/x /y\n');
  const other = await makeFolder(context, { 'server.ini': describeConfig(config) });
  const again = await requireIni(join(other, 'server.ini'));
  const { file, server } = config;
  assert.deepEqual({ ...again, file, server }, config);
  assert.doesNotMatch(JSON.stringify(configJson(config)), /\/m \/n/);
});
