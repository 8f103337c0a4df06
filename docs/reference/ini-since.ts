import type { SectionKind } from '../../src/core/config/schema.ts';

/** The keys of version 0.1; all others came after it. */
const firstKeys: Readonly<Partial<Record<SectionKind, string>>> = {
  server: 'listen data import base public_url trust_proxy connections_per_address workers',
  tls: 'cert key http_redirect hsts acme_directory acme_email acme_eab_kid acme_eab_key acme_ca acme_allow_private',
  'tls.<host>': 'cert key acme',
  'disk.<name>':
    'origin path root index listing dotfiles symlinks precompressed cache_control fallback errors',
  fetch: 'allow_private connect_timeout timeout cache max_body',
  auth: 'anonymous key_rate cors_origins user_header roles_header jwt_jwks jwt_issuer jwt_audience jwt_cookie jwt_user jwt_roles allow_private',
  'engine.<name>': 'page script reference',
  'table.<name>': 'schema',
  webhook: 'allow_private connect_timeout timeout concurrency retention retry',
  node: 'role name',
  geo: 'database country_header',
  log: 'level access format explain',
};

/** The keys that came after version 0.2; `*` stands for all of a section. */
const laterKeys: Readonly<Partial<Record<SectionKind, string>>> = {
  telemetry: '*',
  'event.<name>': '*',
  'proxy.<name>': 'cache_cookies',
  tls: 'acme_on_demand acme_on_demand_rate acme_on_demand_max acme_on_demand_wait',
};

/** The first version that has a key. */
export function sinceVersion(section: SectionKind, name: string): string {
  const later = laterKeys[section]?.split(' ') ?? [];
  if (later.includes('*') || later.includes(name)) return '0.3';
  return firstKeys[section]?.split(' ').includes(name) === true ? '0.1' : '0.2';
}
