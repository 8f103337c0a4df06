import type { Scheme } from '../model/authority.ts';
import type { Cidr } from '../model/cidr.ts';
import type { JsonObject } from '../model/json.ts';
import type { Scope } from '../model/key.ts';

/** Where the server listens: `host:port`, in the clear or over TLS, or `unix:/path`. */
export type Listen =
  | {
      readonly kind: 'tcp';
      readonly scheme: Scheme;
      /** Empty for all interfaces. */
      readonly host: string;
      readonly port: number;
    }
  | { readonly kind: 'unix'; readonly path: string };

/** `[disk.<name>]`: a folder that answers a part of the site. */
export interface DiskMount {
  readonly name: string;
  /** `scheme://host[:port]`, lower case, or `*`. */
  readonly origin: string;
  /** Canonical path prefix that ends in `/`. */
  readonly path: string;
  /** Absolute path of the folder. */
  readonly root: string;
  readonly index: readonly string[];
  readonly listing: boolean;
  readonly dotfiles: 'deny' | 'allow';
  readonly symlinks: 'within' | 'deny' | 'follow';
  readonly precompressed: boolean;
  readonly cacheControl: string | undefined;
  /** Path below the root of a file served with 200 for what no source has. */
  readonly fallback: string | undefined;
  /** Path below the root of a folder of pages for failures: `404.html`, `5xx.html` and such. */
  readonly errors: string | undefined;
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
export interface AcmeConfig {
  /** Lower case, none of them a wildcard. */
  readonly hosts: readonly string[];
  /** URL of the server's directory. */
  readonly directory: string;
  /** Where the server may write to. */
  readonly email: string | undefined;
  /** An account elsewhere that the one with the server belongs to (RFC 8555 §7.3.4). */
  readonly binding: AcmeBinding | undefined;
  /** Networks that the server may be in though they are private. */
  readonly allowPrivate: readonly Cidr[];
  /** Absolute name of a PEM file with those who vouch for the server, besides the well-known. */
  readonly caFile: string | undefined;
}

/** What an authority has given out for its customers to bind their accounts with. */
export interface AcmeBinding {
  readonly kid: string;
  /** Absolute name of a file with the key of the MAC, base64url. */
  readonly keyFile: string;
}

/** `[engine.<name>]`: an engine added to the built-in ones. */
export interface EngineConfig {
  readonly name: string;
  readonly page: string | undefined;
  readonly script: string | undefined;
  readonly reference: string | undefined;
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
 * swapped as one on reload.
 */
export interface Config {
  /** Absolute path of the ini file. */
  readonly file: string;
  /** What `${NAME}` stands for in the ini file and in the file of `[server] import`. */
  readonly variables: Readonly<Record<string, string>>;
  readonly server: {
    readonly listen: readonly Listen[];
    /** Absolute path of the LMDB folder. */
    readonly data: string;
    /** Absolute path of an .ndjson file, imported once into an empty data folder. */
    readonly import: string | undefined;
    /** Empty, or a canonical path without a final slash. */
    readonly base: string;
    /** An origin, `scheme://host[:port]`. */
    readonly publicUrl: string | undefined;
    readonly trustProxy: readonly Cidr[];
    /** Of one process; trusted proxies may have any number. */
    readonly connectionsPerAddress: number;
    /** A number of processes; `auto` is resolved to one a core. */
    readonly workers: number;
  };
  readonly tls: {
    readonly certificates: readonly Certificate[];
    /** Certificates that are got from an ACME server (RFC 8555) and renewed. */
    readonly acme: AcmeConfig;
    /** Whether requests in the clear are sent on to https, where something listens for it. */
    readonly httpRedirect: boolean;
    /** Value of Strict-Transport-Security (RFC 6797 §6.1); undefined for none. */
    readonly hsts: string | undefined;
  };
  /** In the order in which they are asked: exact origin before `*`, longer path before shorter. */
  readonly disk: readonly DiskMount[];
  readonly fetch: {
    readonly allowPrivate: readonly Cidr[];
    readonly connectTimeoutMs: number;
    readonly timeoutMs: number;
    readonly cacheBytesMax: number;
    readonly bodyBytesMax: number;
  };
  readonly auth: {
    readonly anonymous: readonly Scope[];
    /** Operations a second for a key without a rate of its own; undefined for any number. */
    readonly keyRate: number | undefined;
    /** Origins, or `*`. */
    readonly corsOrigins: readonly string[];
    /** Lower case field names. */
    readonly userHeader: string | undefined;
    readonly rolesHeader: string | undefined;
    /** A URL, or the absolute path of a file. */
    readonly jwtJwks: string | undefined;
    readonly jwtIssuer: string | undefined;
    readonly jwtAudience: string | undefined;
    readonly jwtCookie: string;
    /** Claims by the names on the way to them. */
    readonly jwtUser: readonly string[];
    readonly jwtRoles: readonly string[];
    /** Networks that `jwtJwks` may lead to though they are private. */
    readonly allowPrivate: readonly Cidr[];
  };
  readonly engines: readonly EngineConfig[];
  readonly tables: readonly TableConfig[];
  readonly webhook: {
    readonly allowPrivate: readonly Cidr[];
    readonly connectTimeoutMs: number;
    readonly timeoutMs: number;
    readonly concurrency: number;
    readonly retentionMs: number;
    /** The address of this machine that deliveries come from. */
    readonly localAddress: string | undefined;
    readonly retryMs: readonly number[];
  };
  readonly node: {
    readonly role: 'all' | 'central' | 'counter';
    readonly name: string;
    /** Where the node is, such as a shop or a branch: the condition `place` of breadcrumbs. */
    readonly place: string | undefined;
  };
  readonly geo: {
    readonly database: string | undefined;
    /** Lower case field name. */
    readonly countryHeader: string | undefined;
    readonly regionHeader: string | undefined;
    readonly cityHeader: string | undefined;
  };
  readonly log: {
    readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';
    readonly access: boolean;
    readonly format: 'pretty' | 'json' | 'combined';
    /** Absolute path of a file for the access log; undefined for standard output. */
    readonly file: string | undefined;
    /**
     * Whether every content answer names its source in Server-Timing
     * (docs/design/requests.md#precedence).
     */
    readonly explain: boolean;
  };
}

/** One thing that is wrong with an ini file; `line` counts from 1, 0 where no line is to blame. */
export interface ConfigProblem {
  readonly file: string;
  readonly line: number;
  readonly message: string;
}

/** The outcome of reading an ini file: a whole configuration or every problem found. */
export type ConfigResult =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };
