import type { JsonObject } from '../model/json.ts';
import type { ConfigProblem } from './problem.ts';
import type { FieldsOf } from './key.ts';
import type { acmeKeys, SectionFields, tlsKeys } from './schema.ts';

/** `[disk.<name>]`: a folder that answers a part of the site. */
export interface DiskMount extends SectionFields<'disk.<name>'> {
  readonly name: string;
  /** Flat list of name, value, name, value, added to every answer of the mount. */
  readonly headers: readonly string[];
}

/** One certificate of `[tls]` or `[tls.<host>]`, by absolute file names. */
export interface Certificate {
  /** Undefined for the default certificate. */
  readonly host: string | undefined;
  readonly certFile: string;
  readonly keyFile: string;
  /** PEM: what other workers use, for one that is started while the files cannot be used. */
  readonly inUse?: { readonly cert: string; readonly key: string };
}

/** The keys of `[tls]` that begin with `acme_`, and the hosts whose section says `acme = yes`. */
export interface AcmeConfig extends FieldsOf<typeof acmeKeys> {
  /** In lower case; no wildcards. */
  readonly hosts: readonly string[];
}

/** `[engine.<name>]`: an engine added to the built-in ones. */
export interface EngineConfig extends SectionFields<'engine.<name>'> {
  readonly name: string;
}

/** `[table.<name>]`: what is known of a table's fields. */
export interface TableConfig {
  readonly name: string;
  readonly schemaFile: string;
  /** The JSON Schema that the file held when the configuration was read. */
  readonly schema: JsonObject;
}

/**
 * The whole ini file (docs/design/configuration.md#the-ini-file), parsed and validated; frozen, and
 * swapped as one on reload. What schema.ts says of a key decides its name and type here; all paths
 * of files are absolute.
 */
export interface Config {
  /** Absolute path of the ini file. */
  readonly file: string;
  /** What `${NAME}` stands for in the ini file and in the file of `[server] import`. */
  readonly variables: Readonly<Record<string, string>>;
  readonly server: Omit<SectionFields<'server'>, 'base' | 'workers'> & {
    /** Empty, or a canonical path without a final slash. */
    readonly base: string;
    /** A number of processes; `auto` is resolved to one a core. */
    readonly workers: number;
  };
  readonly tls: FieldsOf<typeof tlsKeys> & {
    readonly certificates: readonly Certificate[];
    /** For certificates from an ACME server (RFC 8555). */
    readonly acme: AcmeConfig;
  };
  /** In the order in which they are asked: exact origin before `*`, longer path before shorter. */
  readonly disk: readonly DiskMount[];
  readonly fetch: SectionFields<'fetch'>;
  readonly auth: SectionFields<'auth'>;
  readonly engines: readonly EngineConfig[];
  readonly tables: readonly TableConfig[];
  readonly webhook: SectionFields<'webhook'>;
  readonly node: Omit<SectionFields<'node'>, 'name'> & { readonly name: string };
  readonly geo: SectionFields<'geo'>;
  readonly log: SectionFields<'log'>;
}

/** The outcome of reading an ini file: a whole configuration or every problem found. */
export type ConfigResult =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };

/**
 * Whether an ini file says that an origin leads to its server: `listen`, `public_url`, a
 * `[tls.<host>]` or the origin of a mount names it. `listen` on all addresses names none.
 */
export function namesOrigin(
  { server, tls, disk }: Pick<Config, 'server' | 'tls' | 'disk'>,
  origin: string,
): boolean {
  if (origin === server.publicUrl || disk.some((mount) => mount.origin === origin)) return true;
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

function isLoopback(hostname: string): boolean {
  return ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
}

/** Whether a `[tls.<host>]` is for a name: `*.example.com` is for one label more. */
function covers(host: string, hostname: string): boolean {
  if (!host.startsWith('*.')) return host === hostname;
  const dot = hostname.indexOf('.');
  return dot > 0 && hostname.slice(dot) === host.slice(1);
}
