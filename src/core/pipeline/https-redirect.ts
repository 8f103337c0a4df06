import type { Config } from '../config/config.ts';
import { noBody, replyField, type Reply } from '../http/reply.ts';
import { isRead, type RequestTarget } from '../http/request.ts';
import { defaultPorts } from '../values/network/authority.ts';
import { Failure } from '../values/failure.ts';
import { servicePath } from '../values/path.ts';
import type { Certificates } from '../server/tls/certificates.ts';
import type { Arrived } from './exchange.ts';
import type { Step } from './pipeline.ts';
import type { Peer } from '../values/network/peer.ts';

/**
 * The path below which an ACME server fetches the answers to http-01 challenges (RFC 8555 §8.3).
 */
export const challengePath = '/.well-known/acme-challenge/';

/** The site over TLS. */
interface SecureSite {
  readonly certificates: Pick<Certificates, 'covers' | 'isOnDemand' | 'isPendingFor' | 'mainHost'>;
  /** Undefined without a TLS listener. */
  readonly port: string | undefined;
  readonly config: Config;
}

/** The step that redirects from http to https, as `[tls] http_redirect` says. */
export function httpsStep(site: () => SecureSite | undefined): Step {
  return {
    at: 'https',
    handle(request, next) {
      const secure = site();
      const elsewhere =
        secure && request.sent && redirectToHttps(request.sent.exchange, request, secure);
      return elsewhere ?? next(request);
    },
  };
}

/**
 * Makes the redirect to https, with path and query unchanged. Returns undefined for requests that
 * need none: those over TLS or over a unix socket, those that a trusted proxy got over https, ACME
 * challenges (RFC 8555 §8.3), health checks, and all for a host that waits for its certificate from
 * ACME. The request cannot choose a foreign host: a host without a certificate is redirected to the
 * main one, unless it may get one on demand. Throws `forbidden` if there is no main host.
 */
function redirectToHttps(
  { head: { method, url }, peer }: Arrived,
  { path, origin }: RequestTarget,
  { certificates, port, config }: SecureSite,
): Reply | undefined {
  const { tls, server } = config;
  if (port === undefined || !tls.httpRedirect || origin.startsWith('https:')) return undefined;
  if (peer.listener === 'unix' || path.startsWith(challengePath)) return undefined;
  if (servicePath(path, server.base) === '/health') return undefined;
  const host = origin.slice('http://'.length).replace(/:\d+$/, '');
  if (certificates.isPendingFor(host)) return undefined;
  const to = secureOrigin(host, { certificates, port, publicUrl: server.publicUrl });
  const rest = url.replace(/^https?:\/\/[^/?]*/i, '');
  const location = `${to}${rest.startsWith('/') ? '' : '/'}${rest === '*' ? '' : rest}`;
  return {
    // A 301 may change a method other than GET to GET (RFC 9110 §15.4.2, §15.4.9).
    status: isRead(method) ? 301 : 308,
    fields: ['Location', location, 'Content-Length', '0'],
    body: noBody,
    source: 'none',
  };
}

function secureOrigin(
  host: string,
  site: {
    readonly certificates: SecureSite['certificates'];
    readonly port: string;
    readonly publicUrl: string | undefined;
  },
): string {
  const { certificates, port, publicUrl } = site;
  const known = publicUrl?.startsWith('https://') === true ? publicUrl : undefined;
  if (known?.replace(/:\d+$/, '') === `https://${host}`) return known;
  const isKnown = certificates.covers(host) || certificates.isOnDemand(host);
  if (!isKnown && known !== undefined) return known;
  const name = isKnown ? host : certificates.mainHost;
  if (name === undefined)
    throw new Failure('forbidden', 'The server answers this request over https only.');
  return port === defaultPorts.https ? `https://${name}` : `https://${name}:${port}`;
}

/**
 * Adds Strict-Transport-Security to an answer if the ini file has it: over TLS only (RFC 6797
 * §7.2), and not if the answer already has the field.
 */
export function withHsts(reply: Reply, { hsts }: Config['tls'], peer: Peer): Reply {
  if (hsts === undefined || peer.tls === undefined) return reply;
  if (replyField(reply, 'strict-transport-security') !== undefined) return reply;
  return { ...reply, fields: [...reply.fields, 'Strict-Transport-Security', hsts] };
}
