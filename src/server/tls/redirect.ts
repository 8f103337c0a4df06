import { noBody, type Reply } from '../../http/reply.ts';
import { isRead, type RequestTarget } from '../../http/request.ts';
import { defaultPorts } from '../../model/authority.ts';
import { Failure } from '../../model/failure.ts';
import { servicePath } from '../../model/path.ts';
import type { Certificates } from './certificates.ts';

/** A request in the clear, past the door. */
interface ClearRequest {
  readonly method: string;
  /** The request target as it was sent. */
  readonly url: string;
  readonly target: RequestTarget;
}

/** Where the same site is reached over TLS. */
interface SecureSite {
  readonly certificates: Pick<Certificates, 'isFor' | 'mainHost'>;
  readonly port: string;
  /** `[server] public_url`. */
  readonly publicUrl: string | undefined;
  /** `[server] base`. */
  readonly base: string;
}

const challengePath = '/.well-known/acme-challenge/';

/**
 * The answer that sends a client on to https, path and query as it wrote them; undefined for what
 * is asked in the clear by those who check on us: an ACME server (RFC 8555 §8.3), and whoever looks
 * whether we are up. Nothing that the request says chooses a host that is not ours: one that no
 * certificate is for leads to the main one. Throws `forbidden` where there is no such host.
 */
export function redirectToHttps(
  { method, url, target }: ClearRequest,
  site: SecureSite,
): Reply | undefined {
  const { path, origin } = target;
  if (path.startsWith(challengePath) || servicePath(path, site.base) === '/health')
    return undefined;
  const to = secureOrigin(origin.slice('http://'.length).replace(/:\d+$/, ''), site);
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

function secureOrigin(host: string, { certificates, port, publicUrl }: SecureSite): string {
  const known = publicUrl?.startsWith('https://') === true ? publicUrl : undefined;
  if (known?.replace(/:\d+$/, '') === `https://${host}`) return known;
  const isKnown = certificates.isFor(host);
  if (!isKnown && known !== undefined) return known;
  const name = isKnown ? host : certificates.mainHost;
  if (name === undefined) throw new Failure('forbidden', 'This is answered over https only.');
  return port === defaultPorts.https ? `https://${name}` : `https://${name}:${port}`;
}
