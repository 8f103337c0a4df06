import { accessNearest, errorsNearest, phpNearest } from '../nearest.ts';
/** Directives and options that need no counterpart. */
export const unneeded: ReadonlySet<string> = new Set([
  ...['encode', 'admin', 'persist_config', 'auto_https', 'order', 'grace_period', 'local_certs'],
  ...[
    'servers',
    'bind_default',
    'debug',
    'ocsp_stapling',
    'storage_clean_interval',
    'precompressed',
  ],
]);

/** What comes nearest to a directive that cannot be expressed. */
export const nearest: Readonly<Record<string, string>> = {
  php_fastcgi: phpNearest,
  basic_auth: `${accessNearest} with \`password_file\``,
  basicauth: `${accessNearest} with \`password_file\``,
  forward_auth: `${accessNearest} with \`forward\``,
  client_auth: `${accessNearest} with \`client_certificate\``,
  rate_limit: 'a `[rate.<name>]` section',
  templates: 'a page with the engine `template`',
  rewrite: 'a `[rewrite.<name>]` section with `match` and `to`',
  uri: 'a `[rewrite.<name>]` section with `match` and `to`',
  vars: 'the value itself',
  map: 'one [redirect.<name>] for each line, or a page rule with conditions',
  method: 'nothing: the method of the client is passed on',
  error: 'a page rule with a status, or an `[access.<name>]` section',
  handle_errors: errorsNearest,
  intercept: '`errors` of a [disk.<name>]',
  import: 'the lines of that file: convert it as well, or put them here',
  metrics: '/svc1/metrics',
  tracing: '`endpoint` of [telemetry]',
  abort: `${accessNearest} with \`deny\``,
  push: 'a Link field in a [headers.<name>]',
  acme_server: 'nothing: Waymark only orders certificates',
  on_demand_tls: '`acme_on_demand` of [tls]',
  acme_dns: 'a certificate from a file: ACME needs port 80 or 443',
  acme_ca: '`acme_directory` of [tls]',
  storage: '`data` of [server]',
  log_skip: 'nothing: all requests are in the access log',
  skip_log: 'nothing: all requests are in the access log',
  request_header: 'a [proxy.<name>.request_headers]',
  fs: 'a [disk.<name>] of a folder',
  invoke: 'the lines of that route',
};
