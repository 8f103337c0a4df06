import type { SectionKind } from '../../src/core/config/schema.ts';

/** Keys by name with their values, as lines of a section; a key with a list has several lines. */
type Lines = Readonly<Record<string, string | readonly string[]>>;

/** What else a section needs, so that one key of it has an effect. */
const companions: Readonly<Partial<Record<SectionKind, Lines>>> = {
  tls: { cert: '/etc/waymark/example.com.pem', key: '/etc/waymark/example.com.key' },
  'tls.<host>': { cert: '/etc/waymark/shop.pem', key: '/etc/waymark/shop.key' },
  'disk.<name>': { root: '/srv/www' },
  'proxy.<name>': { source: 'http://127.0.0.1:3000' },
  'headers.<name>': { 'X-Robots-Tag': 'noindex' },
  'redirect.<name>': { path: '/blog/*', to: 'https://blog.example.com/{splat}' },
  'rewrite.<name>': { match: String.raw`^/blog/(\d+)/(.*)$`, to: '/posts/$1-$2' },
  'access.<name>': { path: '/internal/*' },
  'rate.<name>': { path: '/api/*', rate: '100/m' },
  login: { issuer: 'https://id.example.com/realms/staff', client_id: 'www' },
  'login.<name>': { issuer: 'https://id.example.com/realms/staff', client_id: 'www' },
  'log.<name>': { path: '/assets/*' },
  telemetry: { endpoint: 'http://127.0.0.1:4318' },
  'engine.<name>': { script: '/assets/engine.js' },
  'table.<name>': { schema: 'tables/product.json', key: 'sku' },
  node: {
    ...{ role: 'counter', name: 'boathouse' },
    ...{ central: 'https://www.example.com', key_file: 'central.key' },
  },
  cluster: {
    servers: '"nats://10.0.0.1:4222, nats://10.0.0.2:4222, nats://10.0.0.3:4222"',
  },
};

const twoSources = ['http://127.0.0.1:3000', 'http://127.0.0.1:3001'];

/** What a key needs besides, or in place of (empty), the companions of its section. */
const besides: Readonly<Record<string, Lines>> = {
  'tls acme_eab_kid': { acme_eab_key: '/etc/waymark/eab.key' },
  'tls acme_eab_key': { acme_eab_kid: 'customer-7' },
  'tls acme_dns_server': { acme_dns_key: '/etc/waymark/tsig.key' },
  'tls acme_dns_key': { acme_dns_server: '192.0.2.1:53' },
  ...Object.fromEntries(
    ['rate', 'max', 'wait'].map((key) => [
      `tls acme_on_demand_${key}`,
      { acme_on_demand: 'http://127.0.0.1:3000/may-have-certificate' },
    ]),
  ),
  'tls.<host> acme': { cert: '', key: '' },
  'proxy.<name> weight': { source: twoSources },
  'proxy.<name> balance': { source: twoSources },
  'proxy.<name> retries': { source: twoSources },
  ...Object.fromEntries(
    ['origin', 'path', 'except'].map((key) => [`access.<name> ${key}`, { allow: '10.0.0.0/8' }]),
  ),
  'access.<name> certificate_names': { client_certificate: 'staff-ca.pem' },
  'access.<name> copy': { forward: 'http://127.0.0.1:9091/api/authz/forward-auth' },
  'access.<name> satisfy': { allow: '10.0.0.0/8', password_file: 'users.txt' },
  'access.<name> login': { users: '*' },
  'access.<name> providers': { users: 'yes' },
  'auth jwt_issuer': { jwt_jwks: 'https://id.example.com/jwks.json' },
  'auth jwt_audience': { jwt_jwks: 'https://id.example.com/jwks.json' },
  'auth jwt_cookie': { jwt_jwks: 'https://id.example.com/jwks.json' },
  'auth jwt_user': { jwt_jwks: 'https://id.example.com/jwks.json' },
  'auth jwt_roles': { jwt_jwks: 'https://id.example.com/jwks.json' },
  'cluster user': { password_file: '/etc/waymark/nats.password' },
  'cluster password_file': { user: 'waymark' },
  'cluster cert': { key: '/etc/waymark/node.key' },
  'cluster key': { cert: '/etc/waymark/node.pem' },
  ...Object.fromEntries(
    ['rotate_size', 'rotate_age', 'rotate_keep'].map((key) => [
      `log ${key}`,
      { file: '/var/log/waymark/access.log', ...(key === 'rotate_keep' && { rotate_age: '1d' }) },
    ]),
  ),
  'log.<name> path': { access: 'no' },
  'proxy.<name> health_interval': { health: '/status' },
  'redirect.<name> file': { path: '', to: '' },
  'redirect.<name> trailing_slash': { path: '', to: '' },
  'redirect.<name> match': { path: '', to: '/posts/$1' },
};

/** A section that a key needs. */
const otherSections: Readonly<Record<string, string>> = {
  'access.<name> countries': '[geo]\ncountry_header = CF-IPCountry',
  'access.<name> deny_countries': '[geo]\ncountry_header = CF-IPCountry',
  'access.<name> users': '[auth]\njwt_jwks = https://id.example.com/jwks.json',
  'access.<name> roles': '[auth]\njwt_jwks = https://id.example.com/jwks.json',
  'access.<name> providers':
    '[login.staff]\nissuer = https://id.example.com/realms/staff\nclient_id = www',
  'access.<name> login': '[auth]\njwt_jwks = https://id.example.com/jwks.json',
};

/** The name of a section in examples. */
const titles: Readonly<Partial<Record<SectionKind, string>>> = {
  'tls.<host>': 'tls.shop.example.com',
  'disk.<name>': 'disk.site',
  'proxy.<name>': 'proxy.app',
  'headers.<name>': 'headers.all',
  'redirect.<name>': 'redirect.blog',
  'rewrite.<name>': 'rewrite.posts',
  'access.<name>': 'access.staff',
  'rate.<name>': 'rate.api',
  'login.<name>': 'login.staff',
  'log.<name>': 'log.assets',
  'engine.<name>': 'engine.letter',
  'table.<name>': 'table.product',
  'event.<name>': 'event.order.shipped',
};

/** A section of an ini file in which a key has a value, with the other keys that it needs. */
export function wholeExample(section: SectionKind, name: string, value: string): string {
  const needed = { ...companions[section], ...besides[`${section} ${name}`] };
  const lines = Object.entries({ ...needed, [name]: value }).filter(([, text]) => text !== '');
  const written = lines.flatMap(([key, given]) =>
    typeof given === 'string' ? `${key} = ${given}` : given.map((one) => `${key}[] = ${one}`),
  );
  const whole = [`[${titles[section] ?? section}]`, ...written].join('\n');
  const other = otherSections[`${section} ${name}`];
  return other === undefined ? whole : `${whole}\n\n${other}`;
}
