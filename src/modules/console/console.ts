import type { Config } from '../../core/config/config.ts';
import { fieldLines, noBody, withoutFields, type Reply } from '../../core/http/reply.ts';
import { isRead, type Fields, type RequestTarget } from '../../core/http/request.ts';
import { Failure } from '../../core/values/failure.ts';
import { canonicalPath, encodePath } from '../../core/values/path.ts';
import { aloneIndex, type ConsoleFile, type ConsoleFiles } from './console-files.ts';

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

/** Whether a browser wants to register the answer as a service worker (Service Workers §Update). */
function isForServiceWorker(fields: Fields): boolean {
  return (
    fields['service-worker'] !== undefined ||
    fields['sec-fetch-dest']?.toLowerCase() === 'serviceworker'
  );
}

/**
 * Throws `forbidden` for a service worker below `{base}/svc1`: Waymark has none, and a script that
 * an operation or a breadcrumb answers could control the console.
 */
export function refuseServiceWorker(fields: Fields): void {
  if (!isForServiceWorker(fields)) return;
  throw new Failure(
    'forbidden',
    'A service worker cannot be loaded from here, because it could control operations. Load it ' +
      "from its page's own address.",
    { field: 'service-worker' },
  );
}

/**
 * The answer of the site to a request, without a Service-Worker-Allowed by which a service worker
 * of a page rule could control operations or the console
 * (docs/design/console.md#hostile-pages-of-the-same-origin). Throws `forbidden` for the request of
 * a service worker whose folder contains them. Files on disk may be one: only the ini file
 * publishes them.
 */
export function withoutConsoleWorker(
  config: ConsoleConfig,
  { target, fields }: { readonly target: RequestTarget; readonly fields: Fields },
  reply: Reply,
): Reply {
  if (!isShared(config) || !reply.source.startsWith('rule:')) return reply;
  const service = `${config.server.base}/svc1/`;
  const folder = target.path.slice(0, target.path.lastIndexOf('/') + 1);
  if (isForServiceWorker(fields) && service.startsWith(folder)) throw workerFailure;
  const scopes = fieldLines(reply.fields, scopeName);
  const script = target.origin + encodePath(target.path);
  return scopes.some((scope) => reaches(scope, script, service))
    ? { ...reply, fields: withoutFields(reply.fields, scopeName) }
    : reply;
}

const scopeName = 'service-worker-allowed';

/** Whether a scope, relative to its script, has paths in common with those below a folder. */
function reaches(scope: string, script: string, folder: string): boolean {
  const pathname = URL.parse(scope, script)?.pathname ?? '/';
  const path = canonicalPath(pathname) ?? '/';
  return folder.startsWith(path) || path.startsWith(folder);
}

const workerFailure = new Failure(
  'forbidden',
  'A page rule cannot be a service worker for the whole site, because it would control the ' +
    'console. Serve the script from disk, give the console an origin of its own ' +
    '([server] console = https://…), or turn it off.',
);
