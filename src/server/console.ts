import type { Config } from '../config/config.ts';
import { noBody, type Reply } from '../http/reply.ts';
import { isRead, type Fields } from '../http/request.ts';
import { Failure } from '../model/failure.ts';
import { aloneIndex, type ConsoleFile, type ConsoleFiles } from '../pages/console-files.ts';

type ConsoleConfig = Pick<Config, 'server'>;

/** Whether an origin is that of the console alone, where there is nothing of the site. */
export function isConsoleOrigin({ server }: ConsoleConfig, origin: string): boolean {
  return server.console === origin;
}

/** Whether the console shares its origin with the site. */
function isShared({ server }: ConsoleConfig): boolean {
  return server.console === 'yes';
}

/** Whether an origin has the console. */
function hasConsole(config: ConsoleConfig, files: ConsoleFiles, origin: string): boolean {
  return files.size > 0 && (isShared(config) || isConsoleOrigin(config, origin));
}

/**
 * The file of the console at a path below `{base}/svc1`; undefined for another path. Throws
 * `not_found` if this origin has no console, and says why.
 */
export function consoleFile(
  config: ConsoleConfig,
  files: ConsoleFiles,
  { path, origin }: { readonly path: string; readonly origin: string },
): ConsoleFile | undefined {
  const name = /^\/console\/(.*)$/.exec(path)?.[1];
  if (name === undefined) return undefined;
  if (hasConsole(config, files, origin)) {
    return files.get(name === '' && isConsoleOrigin(config, origin) ? aloneIndex : name);
  }
  throw new Failure('not_found', absence(config, files));
}

function absence({ server }: ConsoleConfig, files: ConsoleFiles): string {
  if (server.console === 'no') return 'The console is off: [server] console is no.';
  if (files.size === 0) return 'The console is not built: run `npm run build`.';
  return `The console is at ${server.console}${server.base}/svc1/console/.`;
}

/** The redirect to the console, whose links are relative to its folder. */
export function redirectToConsole({ server }: ConsoleConfig): Reply {
  return {
    status: 308,
    fields: ['Location', `${server.base}/svc1/console/`, 'Content-Length', '0'],
    body: noBody,
    source: 'svc1',
  };
}

/**
 * The reply to a request for content at the console's own origin, which has no pages of the site:
 * a redirect from `/` to the console. Throws `not_found` for other paths; undefined at other
 * origins.
 */
export function consoleOriginReply(
  config: ConsoleConfig,
  { origin, path }: { readonly origin: string; readonly path: string },
  method: string | undefined,
): Reply | undefined {
  if (!isConsoleOrigin(config, origin)) return undefined;
  if (path === '/' && isRead(method ?? '')) return redirectToConsole(config);
  throw new Failure(
    'not_found',
    `${origin} has only the console, at ${config.server.base}/svc1/console/.`,
  );
}

/**
 * A Failure `forbidden` for a service worker from a page rule whose scope could contain the console
 * (docs/design/console.md#hostile-pages-of-the-same-origin). Files on disk may be one.
 */
export function serviceWorkerFailure(
  config: ConsoleConfig,
  { path, fields }: { readonly path: string; readonly fields: Fields },
  { source }: Pick<Reply, 'source'>,
): Failure | undefined {
  if (fields['service-worker'] === undefined || !source.startsWith('rule:')) {
    return undefined;
  }
  const scope = path.slice(0, path.lastIndexOf('/') + 1);
  const console = `${config.server.base}/svc1/console/`;
  if (!isShared(config) || !console.startsWith(scope)) return undefined;
  return new Failure(
    'forbidden',
    'A page rule cannot be a service worker for the whole site, because it would control the ' +
      'console. Serve the script from disk, give the console an origin of its own ' +
      '([server] console = https://…), or turn it off.',
  );
}
