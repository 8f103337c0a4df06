import { resolve } from 'node:path';
import type { JsonObject } from '../model/json.ts';
import { isUrl } from './addresses.ts';
import type { AcmeBinding, Certificate, Config, DiskMount, Listen, TableConfig } from './config.ts';
import type { ParsedIni, ParsedSection } from './parse.ts';

/** What a configuration depends on besides the text of its ini file. */
interface Surroundings {
  /** Absolute path of the ini file. */
  readonly file: string;
  /** Absolute path of its folder, where relative paths start. */
  readonly folder: string;
  /** What `workers = auto` comes to. */
  readonly cores: number;
  /** The default of `[node] name`. */
  readonly hostName: string;
  /** The schema of each table by its name. */
  readonly schemas: ReadonlyMap<string, JsonObject>;
}

/** Makes the frozen configuration of an ini text that has no problems. */
export function assembleConfig(ini: ParsedIni, surroundings: Surroundings): Config {
  const { file, folder, hostName } = surroundings;
  const { tls, auth, geo } = ini;
  const jwks = auth.values.jwt_jwks;
  return frozen({
    file,
    variables: ini.variables,
    server: serverOf(ini, surroundings),
    tls: {
      certificates: [tls, ...ini.hosts].flatMap((section) => certificateOf(section, folder)),
      acme: {
        hosts: ini.hosts.filter(({ values }) => values.acme).map(({ name }) => name),
        directory: tls.values.acme_directory,
        email: tls.values.acme_email,
        binding: bindingOf(tls, folder),
        allowPrivate: tls.values.acme_allow_private,
        caFile: tls.values.acme_ca && resolve(folder, tls.values.acme_ca),
      },
      httpRedirect: tls.values.http_redirect,
      hsts: tls.values.hsts,
    },
    disk: mountsOf(ini, folder),
    fetch: {
      allowPrivate: ini.fetch.values.allow_private,
      connectTimeoutMs: ini.fetch.values.connect_timeout,
      timeoutMs: ini.fetch.values.timeout,
      cacheBytesMax: ini.fetch.values.cache,
      bodyBytesMax: ini.fetch.values.max_body,
    },
    auth: {
      anonymous: unique(auth.values.anonymous),
      keyRate: auth.values.key_rate,
      corsOrigins: unique(auth.values.cors_origins),
      userHeader: auth.values.user_header,
      rolesHeader: auth.values.roles_header,
      jwtJwks: jwks === undefined || isUrl(jwks) ? jwks : resolve(folder, jwks),
      jwtIssuer: auth.values.jwt_issuer,
      jwtAudience: auth.values.jwt_audience,
      jwtCookie: auth.values.jwt_cookie,
      jwtUser: auth.values.jwt_user,
      jwtRoles: auth.values.jwt_roles,
      allowPrivate: auth.values.allow_private,
    },
    engines: ini.engines.map(({ name, values }) => ({ name, ...values })),
    tables: ini.tables.flatMap((section) => tableOf(section, surroundings)),
    webhook: {
      allowPrivate: ini.webhook.values.allow_private,
      connectTimeoutMs: ini.webhook.values.connect_timeout,
      timeoutMs: ini.webhook.values.timeout,
      concurrency: ini.webhook.values.concurrency,
      retentionMs: ini.webhook.values.retention,
      localAddress: ini.webhook.values.local_address,
      retryMs: ini.webhook.values.retry,
    },
    node: {
      role: ini.node.values.role,
      name: ini.node.values.name ?? hostName,
      place: ini.node.values.place,
    },
    geo: {
      database: geo.values.database && resolve(folder, geo.values.database),
      countryHeader: geo.values.country_header,
      regionHeader: geo.values.region_header,
      cityHeader: geo.values.city_header,
    },
    log: { ...ini.log.values, file: ini.log.values.file && resolve(folder, ini.log.values.file) },
  });
}

function serverOf({ server }: ParsedIni, { folder, cores }: Surroundings): Config['server'] {
  const { listen, data, base, public_url, trust_proxy, connections_per_address, workers } =
    server.values;
  return {
    listen: listen.map((one) => listenOf(one, folder)),
    data: resolve(folder, data),
    import: server.values.import && resolve(folder, server.values.import),
    base: base ?? '',
    publicUrl: public_url,
    trustProxy: trust_proxy,
    connectionsPerAddress: connections_per_address,
    workers: workers === 'auto' ? Math.max(1, cores) : workers,
  };
}

function listenOf(listen: Listen, folder: string): Listen {
  return listen.kind === 'unix' ? { kind: 'unix', path: resolve(folder, listen.path) } : listen;
}

function bindingOf({ values }: ParsedSection<'tls'>, folder: string): AcmeBinding | undefined {
  const { acme_eab_kid: kid, acme_eab_key: file } = values;
  if (kid === undefined || file === undefined) return undefined;
  return { kid, keyFile: resolve(folder, file) };
}

function certificateOf(
  { name, values }: ParsedSection<'tls' | 'tls.<host>'>,
  folder: string,
): readonly Certificate[] {
  const { cert, key } = values;
  if (cert === undefined || key === undefined) return [];
  const host = name === '' ? undefined : name;
  return [{ host, certFile: resolve(folder, cert), keyFile: resolve(folder, key) }];
}

function mountsOf({ disk, headers }: ParsedIni, folder: string): readonly DiskMount[] {
  const fields = new Map(headers.map((section) => [section.name, section.fields]));
  const mounts = disk.map(({ name, values }) => {
    const { root, cache_control, ...rest } = values;
    return {
      name,
      ...rest,
      root: resolve(folder, root),
      cacheControl: cache_control,
      headers: fields.get(name) ?? [],
    };
  });
  return mounts.toSorted(
    (one, other) =>
      Number(one.origin === '*') - Number(other.origin === '*') ||
      other.path.length - one.path.length,
  );
}

function tableOf(
  { name, values }: ParsedSection<'table.<name>'>,
  { folder, schemas }: Surroundings,
): readonly TableConfig[] {
  const schema = schemas.get(name);
  if (values.schema === undefined || schema === undefined) return [];
  return [{ name, schemaFile: resolve(folder, values.schema), schema }];
}

function unique<T>(values: readonly T[]): readonly T[] {
  return [...new Set(values)];
}

/** Freezes a value and everything in it; JSON of the operator is at most jsonDepthMax deep. */
function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) frozen(member);
  }
  return value;
}
