import type { Config } from '../../config/config.ts';
import { noBody, type Reply } from '../../http/reply.ts';
import { isRead, type RequestTarget } from '../../http/request.ts';
import { defaultPorts } from '../../model/authority.ts';
import { Failure } from '../../model/failure.ts';
import { servicePath } from '../../model/path.ts';
import { challengePath } from './challenge.ts';
import type { Certificates } from './certificates.ts';
import type { RequestMessage } from '../http-message.ts';

/** Where the same site is reached over TLS. */
interface SecureSite {
  readonly certificates: Pick<Certificates, 'isFor' | 'awaits' | 'mainHost'>;
  /** Undefined where nothing listens for TLS. */
  readonly port: string | undefined;
  readonly config: Config;
}

/**
 * The answer that sends a client on to https, path and query as it wrote them; undefined for what
 * may stay: TLS, a trusted proxy that was asked so or that is at the other end of a unix socket,
 * those who check on us, be it an ACME server (RFC 8555 §8.3) or who looks whether we are up, and
 * all for a host whose certificate an ACME server has yet to issue.
 * Nothing that the request says chooses a host that is not ours: one that no certificate is for
 * leads to the main one. Throws `forbidden` where there is no such host.
 */
export function redirectToHttps(
  { method = '', url = '', socket }: RequestMessage,
  { path, origin }: RequestTarget,
  { certificates, port, config }: SecureSite,
): Reply | undefined {
  const { tls, server } = config;
  if (port === undefined || !tls.httpRedirect || origin.startsWith('https:')) return undefined;
  if (socket.remoteAddress === undefined || path.startsWith(challengePath)) return undefined;
  if (servicePath(path, server.base) === '/health') return undefined;
  const host = origin.slice('http://'.length).replace(/:\d+$/, '');
  if (certificates.awaits(host)) return undefined;
  const to = secureOrigin(host, { certificates, port, publicUrl: server.publicUrl });
  const rest = url.replace(/^https?:\/\/[^/?]*/i, '');
  const location = `${to}${rest.startsWith('/') ? '' : '/'}${rest === '*' ? '' : rest}`;
  return {
    // Only a GET may become another method on the way (RFC 9110 §15.4.2, §15.4.9).
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
  const isKnown = certificates.isFor(host);
  if (!isKnown && known !== undefined) return known;
  const name = isKnown ? host : certificates.mainHost;
  if (name === undefined) throw new Failure('forbidden', 'This is answered over https only.');
  return port === defaultPorts.https ? `https://${name}` : `https://${name}:${port}`;
}
