/**
 * What people write who know the configuration of another server, and its place in this one: the
 * end of a sentence after "write". The nearest key by spelling would mislead: `port` is not
 * `import`.
 */
const keys: ReadonlyMap<string, string> = new Map([
  ['add_header', 'the field as a line of a [headers.<name>]'],
  ['alias', '`root` of a [disk.<name>]'],
  ['auth_basic', '`password_file` of an [access.<name>]'],
  ['auth_basic_user_file', '`password_file` of an [access.<name>]'],
  ['autoindex', '`listing` of a [disk.<name>]'],
  ['backend', '`source` of a [proxy.<name>]'],
  ['bind', '`listen` of [server]'],
  ['client_max_body_size', '`max_body` of a [proxy.<name>]'],
  ['directory', '`root` of a [disk.<name>]'],
  ['document_root', '`root` of a [disk.<name>]'],
  ['error_page', '`errors` of a [disk.<name>]'],
  ['expires', '`Cache-Control = max-age=…` as a line of a [headers.<name>]'],
  ['folder', '`root` of a [disk.<name>]'],
  ['from', '`path`'],
  ['gzip', '`compress` of a [disk.<name>], which is on by default'],
  ['limit_req', '`rate` of a [rate.<name>]'],
  ['location', '`path`'],
  ['password', '`password_file`, with a line of `waymark password NAME`'],
  ['port', '`listen` of [server], such as `listen = :8080`'],
  ['proxy_pass', '`source` of a [proxy.<name>]'],
  ['proxy_read_timeout', '`timeout` of a [proxy.<name>]'],
  ['return', '`to` of a [redirect.<name>]'],
  ['server_name', '`origin` of a section, such as `origin = https://www.example.com`'],
  ['ssl', '`listen = https://:443` of [server], and `cert` and `key` of [tls]'],
  ['ssl_certificate', '`cert` of [tls]'],
  ['ssl_certificate_key', '`key` of [tls]'],
  ['target', '`to` of a [redirect.<name>], or `source` of a [proxy.<name>]'],
  ['try_files', '`try` or `fallback` of a [disk.<name>]'],
  ['upstream', '`source` of a [proxy.<name>]'],
  ['url', '`source` of a [proxy.<name>]'],
]);

const sections: ReadonlyMap<string, string> = new Map([
  ['app', '`[proxy.<name>]` with a `source`'],
  ['http', '`[server]`'],
  ['files', '`[disk.<name>]` with a `root`'],
  ['location', '`[disk.<name>]` or `[proxy.<name>]` with a `path`'],
  ['site', '`[disk.<name>]` with a `root`'],
  ['ssl', '`[tls]`'],
  ['static', '`[disk.<name>]` with a `root`'],
  ['upstream', '`[proxy.<name>]` with a `source`'],
]);

/** Says what stands for a key of another server; undefined for other words. */
export function foreignKey(name: string): string | undefined {
  return keys.get(name.toLowerCase().replaceAll('-', '_'));
}

/** Says what stands for a section that other servers have; undefined for other words. */
export function foreignSection(name: string): string | undefined {
  return sections.get(name.toLowerCase());
}
