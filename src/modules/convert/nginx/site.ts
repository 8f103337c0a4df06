import type { Conversion } from '../conversion.ts';
import { type Directive, accessNearest, allOf, errorsNearest, lastOf } from '../directive.ts';
import type { FieldWish, SitePlace } from '../sections.ts';
import { fieldTemplate, secondsOf } from './variables.ts';

/** Directives that need no counterpart: Waymark does by itself what they switch on or tune. */
const unneeded: ReadonlySet<string> = new Set([
  ...['user', 'pid', 'events', 'worker_processes', 'worker_connections', 'worker_rlimit_nofile'],
  ...['multi_accept', 'use', 'daemon', 'pcre_jit', 'thread_pool', 'load_module', 'sendfile'],
  ...['tcp_nopush', 'tcp_nodelay', 'aio', 'directio', 'output_buffers', 'types_hash_max_size'],
  ...['server_names_hash_bucket_size', 'server_names_hash_max_size', 'map_hash_bucket_size'],
  ...['variables_hash_max_size', 'server_tokens', 'keepalive_timeout', 'keepalive_requests'],
  ...['reset_timedout_connection', 'client_body_timeout', 'client_header_timeout', 'send_timeout'],
  ...['client_body_buffer_size', 'client_header_buffer_size', 'large_client_header_buffers'],
  ...['open_file_cache', 'open_file_cache_valid', 'open_file_cache_min_uses'],
  ...['open_file_cache_errors', 'default_type', 'charset', 'etag', 'error_log', 'log_not_found'],
  ...['gzip', 'gzip_types', 'gzip_vary', 'gzip_min_length', 'gzip_comp_level', 'gzip_proxied'],
  ...['gzip_buffers', 'gzip_http_version', 'gzip_disable', 'gzip_static', 'brotli'],
  ...['brotli_types', 'brotli_comp_level', 'brotli_static', 'http2', 'ssl_protocols'],
  ...['ssl_ciphers', 'ssl_prefer_server_ciphers', 'ssl_session_cache', 'ssl_session_timeout'],
  ...['ssl_session_tickets', 'ssl_dhparam', 'ssl_ecdh_curve', 'ssl_stapling', 'ssl'],
  ...['ssl_stapling_verify', 'ssl_trusted_certificate', 'ssl_buffer_size', 'resolver'],
  ...['resolver_timeout', 'proxy_http_version', 'proxy_buffering', 'proxy_buffers'],
  ...['proxy_buffer_size', 'proxy_busy_buffers_size', 'proxy_request_buffering', 'proxy_redirect'],
  ...['proxy_temp_path', 'proxy_max_temp_file_size', 'proxy_headers_hash_max_size', 'zone'],
  ...['proxy_headers_hash_bucket_size', 'proxy_socket_keepalive', 'proxy_ssl_server_name'],
  ...['proxy_send_timeout', 'proxy_pass_request_headers', 'proxy_pass_request_body', 'keepalive'],
  ...['proxy_cache_path', 'proxy_cache_key', 'proxy_cache_lock', 'proxy_cache_revalidate'],
  ...['proxy_cache_background_update', 'proxy_cache_use_stale', 'port_in_redirect'],
  ...[
    'server_name_in_redirect',
    'absolute_redirect',
    'chunked_transfer_encoding',
    'recursive_error_pages',
  ],
  ...['least_conn', 'proxy_cache_min_uses'],
]);
const application =
  'run the application with an HTTP server of its own, and name it in `source` of a [proxy.<name>]';

/** What comes nearest to a directive that cannot be expressed. */
export const nearest: Readonly<Record<string, string>> = {
  fastcgi_pass: application,
  uwsgi_pass: application,
  scgi_pass: application,
  grpc_pass: 'a [proxy.<name>] whose `source` is an h2c address',
  memcached_pass: application,
  auth_basic: `${accessNearest} with \`password_file\``,
  auth_basic_user_file: `${accessNearest} with \`password_file\``,
  auth_request: `${accessNearest} with \`forward\``,
  auth_request_set: `${accessNearest} with \`forward\` and \`copy\``,
  allow: `${accessNearest} with \`allow\` and \`deny\``,
  deny: `${accessNearest} with \`allow\` and \`deny\``,
  satisfy: `${accessNearest} with \`satisfy\``,
  ssl_crl: `${accessNearest} with \`certificate_names\`, for those that are let in`,
  ssl_verify_depth: 'nothing: a certificate may have any number of authorities above it',
  ssl_client_certificate: `${accessNearest} with \`client_certificate\``,
  ssl_verify_client: `${accessNearest} with \`client_certificate\``,
  limit_req: 'a `[rate.<name>]` section',
  limit_conn: '`connections_per_address` of [server]',
  limit_conn_zone: '`connections_per_address` of [server]',
  limit_rate: 'nothing; a proxy in front can slow clients down',
  map: 'one [redirect.<name>] for each line, or a page rule with conditions',
  geo: `${accessNearest} with \`allow\`, or a page rule with conditions`,
  split_clients: 'a page rule of the kind `resolve` with shares of visitors',
  rewrite: 'a `[rewrite.<name>]` section for paths inside, a [redirect.<name>] for others',
  if: 'a [redirect.<name>] for an origin, or a page rule with conditions',
  set: 'the value itself, or a variable such as `${host}` in [headers.<name>]',
  include: 'the lines of that file: convert it as well, or put them here',
  sub_filter: 'a change in the application or the files',
  sub_filter_once: 'a change in the application or the files',
  types: '`types` of a [disk.<name>]',
  http3: 'HTTP/2, which Waymark speaks over TLS',
  merge_slashes: 'nothing: an application gets the path as sent, and files are redirected',
  proxy_cache_valid: 'a Cache-Control of the application',
  proxy_cache_bypass: 'a Cache-Control of the application',
  proxy_no_cache: 'a Cache-Control of the application',
  proxy_next_upstream: 'several `source[]`: Waymark asks another one when one fails',
  proxy_next_upstream_tries: 'several `source[]`: Waymark asks another one when one fails',
  proxy_cookie_path: 'the application itself: Waymark limits cookies to the path of the proxy',
  proxy_cookie_domain: 'the application itself: Waymark removes the Domain of cookies',
  proxy_intercept_errors: '`errors` of a [disk.<name>]',
  proxy_ssl_verify: 'a certificate that Node.js trusts: Waymark always verifies it',
  error_page: errorsNearest,
  real_ip_header: '`trust_proxy` of [server]',
  real_ip_recursive: '`trust_proxy` of [server]',
  log_format: '`format` of [log]: `combined` or `json`',
  mirror: 'a `mirror` of the [proxy.<name>]',
  ip_hash: '`balance = address` of the [proxy.<name>]',
  hash: '`balance` of the [proxy.<name>]',
  stub_status: '/svc1/metrics',
  internal: 'nothing: a file below `root` can be asked for',
  ssl_password_file: 'a key without a password',
  stream: 'nothing: Waymark speaks HTTP only',
  mail: 'nothing: Waymark speaks HTTP only',
};

/** A server of nginx, on its way to sections of Waymark. */
export interface NginxSite extends SitePlace {
  /** The scheme of all its addresses; undefined if it has both. */
  readonly scheme: 'http' | 'https' | undefined;
  /** The first name. */
  readonly server: string | undefined;
  readonly upstreams: ReadonlyMap<string, Directive>;
  /** The blocks whose directives a location inherits, the innermost first. */
  readonly outer: readonly (readonly Directive[])[];
}

/** The directive of a name that counts in a block: its own, or the one that it inherits. */
export function effective(
  { outer }: Pick<NginxSite, 'outer'>,
  block: readonly Directive[],
  name: string,
): Directive | undefined {
  for (const each of [block, ...outer]) {
    const found = lastOf(each, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The directives of a name that count in a block: all of the innermost block that has one. */
export function effectiveAll(
  { outer }: Pick<NginxSite, 'outer'>,
  block: readonly Directive[],
  name: string,
): readonly Directive[] {
  for (const each of [block, ...outer]) {
    const found = allOf(each, name);
    if (found.length > 0) return found;
  }
  return [];
}

/**
 * The `proxy_set_header` lines of a block that send a field of the answer to `auth_request` under
 * its own name, as `copy` does.
 */
export function copiesOfRequest(
  site: Pick<NginxSite, 'outer'>,
  block: readonly Directive[],
): ReadonlySet<Directive> {
  const set = effectiveAll(site, block, 'auth_request_set');
  const fields = new Map(
    set.map(({ words: [variable = '', value = ''] }) => {
      const [, field = ''] = /^\$upstream_http_(\w+)$/.exec(value) ?? [];
      return [variable, field.replaceAll('_', '-').toLowerCase()];
    }),
  );
  const sent = effectiveAll(site, block, 'proxy_set_header');
  return new Set(
    sent.filter(({ words: [name = '', value = ''] }) => fields.get(value) === name.toLowerCase()),
  );
}

/** Whether an `include` names a file of nginx or certbot that needs no counterpart. */
export function isKnownInclude({ words: [file = ''] }: Directive): boolean {
  return /(?:^|\/)(?:mime\.types|options-ssl-nginx\.conf)$/.test(file);
}

/** Leaves each directive of a block that is neither handled nor unneeded. */
export function leaveOthers(
  conversion: Conversion,
  block: readonly Directive[],
  handled: ReadonlySet<string>,
): void {
  for (const directive of block) {
    const { name, words } = directive;
    if (name === 'ssl_protocols' && !words.includes('TLSv1.2')) {
      conversion.leave(directive, 'nothing: Waymark speaks TLS 1.2 and 1.3');
    }
    if (handled.has(name) || unneeded.has(name)) continue;
    if (name === 'include' && isKnownInclude(directive)) continue;
    const known = Object.hasOwn(nearest, name) ? nearest[name] : undefined;
    conversion.leave(directive, known ?? 'nothing that this command knows');
  }
}

const yearSeconds = 31_536_000;

/** The `Cache-Control` that `expires` stands for; undefined for none. */
function cacheControlOf({ words }: Directive): string | undefined {
  const [text = ''] = words;
  if (text === 'max') return `max-age=${10 * yearSeconds}`;
  if (text === 'epoch' || text.startsWith('-')) return 'no-cache';
  const seconds = secondsOf(text);
  return seconds === undefined ? undefined : `max-age=${seconds}`;
}

/** The fields that `add_header` and `expires` of a block add to answers. */
export function fieldsOf(
  conversion: Conversion,
  block: readonly Directive[],
): readonly FieldWish[] {
  const fields: FieldWish[] = [];
  const expires = lastOf(block, 'expires');
  const age = expires && cacheControlOf(expires);
  if (expires !== undefined && age === undefined && expires.words[0] !== 'off') {
    conversion.leave(expires, 'a Cache-Control in a [headers.<name>]');
  }
  const controls: string[] = age === undefined ? [] : [age];
  for (const directive of allOf(block, 'add_header')) {
    const [name = '', value = ''] = directive.words;
    const template = fieldTemplate(value);
    if (template === undefined) {
      conversion.leave(directive, 'a [headers.<name>], which knows other variables');
    } else if (name.toLowerCase() === 'cache-control') controls.push(template);
    else fields.push({ name, template, source: directive });
  }
  const source = lastOf(block, 'add_header') ?? expires;
  const control = allOf(block, 'add_header').find(
    ({ words }) => words[0]?.toLowerCase() === 'cache-control',
  );
  if (controls.length > 0 && source !== undefined) {
    const template = controls.join(', ');
    fields.unshift({ name: 'Cache-Control', template, source: control ?? expires ?? source });
  }
  return fields;
}
