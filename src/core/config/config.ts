import { coversOrigin } from '../values/network/origin-pattern.ts';
import type { JsonObject } from '../values/json/json.ts';
import type { TableDefinition } from '../../modules/tables/table.ts';
import type { ConfigProblem } from './problem.ts';
import type { IncludePattern } from './include.ts';
import type { FieldsOf } from './ini-key.ts';
import type { MountFiles } from '../../modules/redirects/mount-files.ts';
import type { acmeKeys, SectionFields, tlsKeys } from './schema.ts';
import { ownLoginName } from '../../modules/login/section.ts';
import type { RequestRate } from '../../modules/rates/section.ts';

/** `[disk.<name>]`: a folder that is served as a part of the site. */
export interface DiskMount extends SectionFields<'disk.<name>'>, MountFiles {
  readonly name: string;
  /** Header fields of every answer of the mount: name, value, name, value … */
  readonly headers: readonly string[];
}

/** One certificate of `[tls]` or `[tls.<host>]`, with absolute file names. */
export interface Certificate {
  /** Undefined for the default certificate. */
  readonly host: string | undefined;
  readonly certFile: string;
  readonly keyFile: string;
  /** PEM: the pair that other workers use, for a worker that starts while the files are invalid. */
  readonly inUse?: { readonly cert: string; readonly key: string };
}

/** The keys of `[tls]` that begin with `acme_`, and the hosts whose section says `acme = yes`. */
export interface AcmeConfig extends FieldsOf<typeof acmeKeys> {
  /** In lower case; no wildcards. */
  readonly hosts: readonly string[];
}

/** `[proxy.<name>]`: an application behind Waymark. */
export interface ProxyConfig extends SectionFields<'proxy.<name>'> {
  readonly name: string;
  /** Fields of the requests to it: name, template, name, template … */
  readonly requestHeaders: readonly string[];
  /** Fields of its answers: name, template, name, template … */
  readonly headers: readonly string[];
}

/** `[redirect.<name>]`: it has one of `to`, `file` and `trailingSlash`. */
export interface RedirectConfig extends Omit<SectionFields<'redirect.<name>'>, 'status'> {
  readonly name: string;
  readonly status: number;
  /** The text of `file`. */
  readonly fileText: string | undefined;
}

/** `[rewrite.<name>]`. */
export interface RewriteConfig {
  readonly name: string;
  readonly origin: string;
  /** A regular expression; see linearPattern. */
  readonly match: string;
  /** A canonical path, with an optional query. */
  readonly to: string;
}

/** `[access.<name>]`: who may see some paths. */
export interface AccessConfig extends SectionFields<'access.<name>'> {
  readonly name: string;
}

/** `[log]`, with each `[log.<name>]`. */
interface LogConfig extends SectionFields<'log'> {
  readonly paths: readonly (SectionFields<'log.<name>'> & { readonly name: string })[];
}

/** `[rate.<name>]`: how often clients may ask for some paths. */
export interface RateConfig extends Omit<SectionFields<'rate.<name>'>, 'rate'> {
  readonly name: string;
  readonly rate: RequestRate;
}

/** `[headers.<name>]`: fields of answers. */
export interface HeadersConfig extends SectionFields<'headers.<name>'> {
  readonly name: string;
  /** Name, template, name, template …; a name that ends with `[]` adds a field. */
  readonly fields: readonly string[];
}

/** `[engine.<name>]`: an engine added to the built-in ones. */
export interface EngineConfig extends SectionFields<'engine.<name>'> {
  readonly name: string;
}

/** `[event.<name>]`: a type of events that applications insert. */
export interface EventTypeConfig extends SectionFields<'event.<name>'> {
  readonly name: string;
  /** The JSON Schema of the data, the content of the file. */
  readonly schema: JsonObject;
}

/** `[table.<name>]`: a table of records. */
export interface TableConfig extends SectionFields<'table.<name>'> {
  readonly name: string;
  /** The table as it is stored, with the content of the schema's file. */
  readonly definition: Omit<TableDefinition, 'id'>;
}

/**
 * The whole ini file (docs/design/configuration.md#the-ini-file), parsed and validated. The object
 * is frozen, and a reload replaces it as a whole. schema.ts decides the name and type of each key.
 * All file names are absolute.
 */
export interface Config {
  /** Absolute path of the ini file. */
  readonly file: string;
  /** Absolute paths of the files of `[server] include`. */
  readonly includedFiles: readonly string[];
  /** Absolute paths of the files and folders that no mount may serve, besides these. */
  readonly privatePaths: readonly string[];
  /** The values of `${NAME}` in the ini file and in the file of `[server] import`. */
  readonly variables: Readonly<Record<string, string>>;
  readonly server: Omit<SectionFields<'server'>, 'base' | 'workers'> & {
    /** Empty, or a canonical path without a final slash. */
    readonly base: string;
    /** The number of processes; `auto` is one for each core. */
    readonly workers: number;
  };
  readonly tls: FieldsOf<typeof tlsKeys> & {
    readonly certificates: readonly Certificate[];
    /** For certificates from an ACME server (RFC 8555). */
    readonly acme: AcmeConfig;
  };
  /** In the order of matching: exact origin before `*`, longer path before shorter. */
  readonly disk: readonly DiskMount[];
  readonly proxies: readonly ProxyConfig[];
  /** In the order of the file. */
  readonly headers: readonly HeadersConfig[];
  /** In the order of the file. */
  readonly redirects: readonly RedirectConfig[];
  /** In the order of the file. */
  readonly rewrites: readonly RewriteConfig[];
  readonly access: readonly AccessConfig[];
  readonly rates: readonly RateConfig[];
  /** Without an issuer, nobody signs in here. */
  readonly login: SectionFields<'login'>;
  /** Further providers, in the order of the file. */
  readonly logins: readonly (SectionFields<'login.<name>'> & { readonly name: string })[];
  readonly fetch: SectionFields<'fetch'>;
  readonly auth: SectionFields<'auth'>;
  readonly engines: readonly EngineConfig[];
  readonly tables: readonly TableConfig[];
  readonly eventTypes: readonly EventTypeConfig[];
  readonly webhook: SectionFields<'webhook'>;
  readonly node: Omit<SectionFields<'node'>, 'name'> & { readonly name: string };
  /** Without servers, this machine is no node of a cluster. */
  readonly cluster: SectionFields<'cluster'>;
  readonly asset: SectionFields<'asset'>;
  readonly geo: SectionFields<'geo'>;
  readonly review: SectionFields<'review'>;
  readonly mcp: SectionFields<'mcp'>;
  readonly stats: SectionFields<'stats'>;
  readonly log: LogConfig;
  /** Without an endpoint, there are no traces. */
  readonly telemetry: SectionFields<'telemetry'>;
}

/** A provider where visitors sign in. */
export interface LoginConfig extends Omit<Config['login'], 'issuer' | 'clientId' | 'prefix'> {
  /** The name of its section; `login` for that of `[login]`. */
  readonly name: string;
  readonly issuer: string;
  readonly clientId: string;
  /** The text before the names of its users and roles. */
  readonly prefix: string;
}

/** The providers of a configuration, that of `[login]` first. */
export function loginProviders({
  login,
  logins,
}: Pick<Config, 'login' | 'logins'>): readonly LoginConfig[] {
  return [{ name: ownLoginName, ...login }, ...logins].flatMap(
    ({ name, issuer, clientId, prefix, ...others }) => {
      if (issuer === undefined || clientId === undefined) return [];
      const own = name === ownLoginName ? '' : `${name}:`;
      return [
        { ...others, name, issuer, clientId, prefix: prefix === 'no' ? '' : (prefix ?? own) },
      ];
    },
  );
}

/** The result of reading an ini file: a configuration, or all problems of the file. */
export type ConfigResult =
  | { readonly ok: true; readonly config: Config }
  | {
      readonly ok: false;
      readonly problems: readonly ConfigProblem[];
      /** A change of one of these may repair the file. */
      readonly besides?: ReadBesides;
    };

/** What the configuration depends on besides the ini file. */
export interface ReadBesides {
  /** The absolute paths of the included files and of the schemas of tables. */
  readonly files: readonly string[];
  /** The patterns of `[server] include`, whose folders may get more files. */
  readonly patterns: readonly IncludePattern[];
}

/**
 * Whether a configuration names an origin as one of its server: in `listen`, `public_url`, a
 * `[tls.<host>]` or the origin of a mount or proxy. `listen` on all interfaces names only
 * localhost.
 */
export function namesOrigin(
  {
    server,
    tls,
    disk,
    proxies,
    redirects,
    rewrites,
  }: Pick<Config, 'server' | 'tls' | 'disk' | 'proxies' | 'redirects' | 'rewrites'>,
  origin: string,
): boolean {
  if (origin === server.publicUrl) return true;
  const sections = [...disk, ...proxies, ...redirects, ...rewrites];
  if (sections.some((one) => one.origin !== '*' && coversOrigin(one.origin, origin))) return true;
  const { protocol, hostname, port } = new URL(origin);
  const isOverTls = protocol === 'https:';
  const listening = server.listen.some(
    (where) =>
      where.kind === 'tcp' &&
      (where.scheme === 'https') === isOverTls &&
      (where.host === hostname || isLoopback(hostname)) &&
      String(where.port) === (port || (isOverTls ? '443' : '80')),
  );
  const hosts = [...tls.certificates.flatMap(({ host }) => host ?? []), ...tls.acme.hosts];
  return listening || hosts.some((host) => covers(host, hostname));
}

/** Whether the host of a URL is a name of this machine for itself. */
export function isLoopback(hostname: string): boolean {
  return ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
}

/** Whether a `[tls.<host>]` covers a name: `*.example.com` covers exactly one more label. */
function covers(host: string, hostname: string): boolean {
  if (!host.startsWith('*.')) return host === hostname;
  const dot = hostname.indexOf('.');
  return dot > 0 && hostname.slice(dot) === host.slice(1);
}
