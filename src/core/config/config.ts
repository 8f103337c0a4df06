import { coversOrigin } from '../values/network/origin-pattern.ts';
import type { IncludePattern } from './include.ts';
import type { ConfigProblem } from './problem.ts';

/**
 * The whole ini file (docs/design/configuration.md#the-ini-file), parsed and validated. The object
 * is frozen, and a reload replaces it as a whole. All file names are absolute. Each section
 * declares here, by `declare module`, the member that it makes.
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
  readonly besides: ReadBesides;
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
  /** The absolute paths of the included files, and of those whose content it has. */
  readonly files: readonly string[];
  /** The patterns of `[server] include`, whose folders may get more files. */
  readonly patterns: readonly IncludePattern[];
}

/** Whether a configuration names an origin as one of its server: one of its sections does. */
export function namesOrigin(config: Config, origin: string): boolean {
  const { hostname, origin: canonical } = new URL(origin);
  return config.sections.some((section) => {
    const { origins = [], hosts = [] } = section.names?.(config) ?? {};
    return (
      origins.some((one) => one !== '*' && coversOrigin(one, canonical)) ||
      hosts.some((host) => covers(host, hostname))
    );
  });
}

/** The names of this machine for itself, as hosts of URLs. */
export const loopbackHosts: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/** Whether the host of a URL is a name of this machine for itself. */
export function isLoopback(hostname: string): boolean {
  return loopbackHosts.includes(hostname);
}

/** Whether a `[tls.<host>]` covers a name: `*.example.com` covers exactly one more label. */
function covers(host: string, hostname: string): boolean {
  if (!host.startsWith('*.')) return host === hostname;
  const dot = hostname.indexOf('.');
  return dot > 0 && hostname.slice(dot) === host.slice(1);
}
