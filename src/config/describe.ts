import { isCidr, type Cidr } from '../model/cidr.ts';
import type { Json, JsonObject } from '../model/json.ts';
import type { Config, DiskMount, EngineConfig, Listen } from './config.ts';
import type { SectionKind, Sections } from './schema.ts';
import { hstsText } from './hsts.ts';
import { unsubstituted } from './substitute.ts';

/** The texts of a section's keys: none for a key that is not set, several for a repeated one. */
type Written<K extends SectionKind> = Readonly<
  Record<keyof Sections[K], string | readonly string[] | undefined>
>;

const timeUnits = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000 } as const;
const sizeUnits = { TiB: 2 ** 40, GiB: 2 ** 30, MiB: 2 ** 20, KiB: 2 ** 10 } as const;
const plainText = /^[\w./:*@+-]+(?:,? [\w./:*@+-]+)*$/;

/**
 * The effective configuration as an ini text: every key of
 * docs/design/configuration.md#the-ini-file, defaults too, paths absolute. Read again, it gives the
 * same configuration.
 */
export function describeConfig(config: Config): string {
  const { tls } = config;
  const fallback = tls.certificates.find(({ host }) => host === undefined);
  const sections = [
    ...(Object.keys(config.variables).length > 0 ? [section('variables', config.variables)] : []),
    section('server', serverKeys(config)),
    section('tls', {
      cert: fallback?.certFile,
      key: fallback?.keyFile,
      http_redirect: yesNo(tls.httpRedirect),
      hsts: tls.hsts && hstsText(tls.hsts),
      acme_directory: tls.acme.directory,
      acme_email: tls.acme.email,
      acme_eab_kid: tls.acme.binding?.kid,
      acme_eab_key: tls.acme.binding?.keyFile,
      acme_ca: tls.acme.caFile,
      acme_allow_private: networks(tls.acme.allowPrivate),
    } satisfies Written<'tls'>),
    ...tls.certificates.flatMap(({ host, certFile, keyFile }) => {
      const keys = { cert: certFile, key: keyFile, acme: 'no' } satisfies Written<'tls.<host>'>;
      return host === undefined ? [] : [section(`tls.${host}`, keys)];
    }),
    ...tls.acme.hosts.map((host) => {
      const keys = { cert: undefined, key: undefined, acme: 'yes' } satisfies Written<'tls.<host>'>;
      return section(`tls.${host}`, keys);
    }),
    ...config.disk.flatMap(mountSections),
    ...moreSections(config),
  ];
  return sections.join('\n');
}

/** The effective configuration as JSON: networks as they are written, null for what is not set. */
export function configJson(config: Config): JsonObject {
  return toJson(config) as JsonObject;
}

function serverKeys({ server }: Config): Written<'server'> {
  return {
    listen: server.listen.map(listenText),
    data: server.data,
    import: server.import,
    base: escapedPath(server.base),
    public_url: server.publicUrl,
    trust_proxy: networks(server.trustProxy),
    connections_per_address: String(server.connectionsPerAddress),
    workers: String(server.workers),
  };
}

function mountSections(mount: DiskMount): readonly string[] {
  const { name, origin, root, dotfiles, symlinks, fallback, errors, headers } = mount;
  const keys: Written<'disk.<name>'> = {
    origin,
    path: escapedPath(mount.path),
    root,
    index: mount.index.join(', '),
    listing: yesNo(mount.listing),
    dotfiles,
    symlinks,
    precompressed: yesNo(mount.precompressed),
    cache_control: mount.cacheControl,
    fallback,
    errors,
  };
  const fields = headers.filter((_, at) => at % 2 === 0);
  const counts = Map.groupBy(fields, (field) => field.toLowerCase());
  const lines = fields.map((field, at) => {
    const isRepeated = (counts.get(field.toLowerCase()) ?? []).length > 1;
    return line(isRepeated ? `${field}[]` : field, headers[2 * at + 1] ?? '');
  });
  if (lines.length === 0) return [section(`disk.${name}`, keys)];
  return [section(`disk.${name}`, keys), `[disk.${name}.headers]\n${lines.join('')}`];
}

function moreSections({ fetch, auth, engines, tables, webhook, node, geo, log }: Config) {
  return [
    section('fetch', {
      allow_private: networks(fetch.allowPrivate),
      connect_timeout: timeText(fetch.connectTimeoutMs),
      timeout: timeText(fetch.timeoutMs),
      cache: sizeText(fetch.cacheBytesMax),
      max_body: sizeText(fetch.bodyBytesMax),
    } satisfies Written<'fetch'>),
    section('auth', {
      anonymous: auth.anonymous.join(', '),
      key_rate: auth.keyRate?.toString(),
      cors_origins: auth.corsOrigins.join(', '),
      user_header: auth.userHeader,
      roles_header: auth.rolesHeader,
      jwt_jwks: auth.jwtJwks,
      jwt_issuer: auth.jwtIssuer,
      jwt_audience: auth.jwtAudience,
      jwt_cookie: auth.jwtCookie,
      jwt_user: auth.jwtUser.join('.'),
      jwt_roles: auth.jwtRoles.join('.'),
      allow_private: networks(auth.allowPrivate),
    } satisfies Written<'auth'>),
    ...engines.map(engineSection),
    ...tables.map(({ name, schemaFile }) =>
      section(`table.${name}`, { schema: schemaFile } satisfies Written<'table.<name>'>),
    ),
    section('webhook', {
      allow_private: networks(webhook.allowPrivate),
      connect_timeout: timeText(webhook.connectTimeoutMs),
      timeout: timeText(webhook.timeoutMs),
      concurrency: String(webhook.concurrency),
      retention: timeText(webhook.retentionMs),
      retry: webhook.retryMs.map(timeText).join(', '),
      local_address: webhook.localAddress,
    } satisfies Written<'webhook'>),
    section('node', node satisfies Written<'node'>),
    section('geo', {
      database: geo.database,
      country_header: geo.countryHeader,
      region_header: geo.regionHeader,
      city_header: geo.cityHeader,
    } satisfies Written<'geo'>),
    section('log', {
      level: log.level,
      access: yesNo(log.access),
      format: log.format,
      file: log.file,
      explain: yesNo(log.explain),
    } satisfies Written<'log'>),
  ];
}

function engineSection({ name, page, script, reference }: EngineConfig): string {
  const keys: Written<'engine.<name>'> = { page: page && escapedPath(page), script, reference };
  return section(`engine.${name}`, keys);
}

function section(
  name: string,
  keys: Readonly<Record<string, string | readonly string[] | undefined>>,
) {
  const lines = Object.entries(keys).map(([key, value]) => {
    if (typeof value !== 'object') return line(key, value ?? '');
    const [only = ''] = value;
    return value.length === 1
      ? line(key, only)
      : value.map((one) => line(`${key}[]`, one)).join('');
  });
  return `[${name}]\n${lines.join('')}`;
}

/**
 * One line of an ini text; whatever could mean something to its reader stands in quotes, as JSON.
 */
function line(key: string, value: string): string {
  const text = unsubstituted(value);
  const written = text === '' || plainText.test(text) ? text : JSON.stringify(text);
  const name = /^[\w-]+(?:\[\])?$/.test(key) ? key : JSON.stringify(key);
  return `${name} = ${written}`.trimEnd() + '\n';
}

function listenText(listen: Listen): string {
  if (listen.kind === 'unix') return `unix:${listen.path}`;
  const { scheme, host, port } = listen;
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return scheme === 'https' ? `https://${address}` : address;
}

/** A canonical path with those characters escaped that the ini file would not take as they are. */
function escapedPath(path: string): string {
  return path.replace(/[%?#]/g, encodeURIComponent);
}

function timeText(ms: number): string {
  const unit = Object.entries(timeUnits).find(([, unitMs]) => ms % unitMs === 0 && ms > 0);
  return unit === undefined ? `${ms}ms` : `${ms / unit[1]}${unit[0]}`;
}

function sizeText(bytes: number): string {
  const unit = Object.entries(sizeUnits).find(([, unitBytes]) => bytes % unitBytes === 0);
  return unit === undefined || bytes === 0 ? String(bytes) : `${bytes / unit[1]}${unit[0]}`;
}

function networks(cidrs: readonly Cidr[]): string {
  return cidrs.map(({ text }) => text).join(', ');
}

function yesNo(value: boolean): string {
  return value ? 'yes' : 'no';
}

function toJson(value: unknown): Json {
  if (value === undefined) return null;
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value !== 'object' || value === null) return value as Json;
  if (isCidr(value)) return value.text;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, toJson(member)]));
}
