import { plainAddress } from '../http/forwarded.ts';
import { cidrsContain, parseCidr } from '../model/cidr.ts';
import type { IncomingRequest } from './incoming-request.ts';
import type { RequestMessage } from './http-message.ts';

const loopback = ['127.0.0.0/8', '::1'].flatMap((text) => parseCidr(text) ?? []);
/** Fields that a proxy adds: the proxy may run on this machine, its clients do not. */
const proxyFields = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'];

/** What a browser says of a request that no page of another site has made (Fetch Metadata). */
const ownSites: readonly (string | undefined)[] = [undefined, 'none', 'same-origin'];

/**
 * Whether a request was sent by a program on this machine: not by a proxy on behalf of others, nor
 * by a browser on behalf of a page of another site. Such a page can reach the loopback under a name
 * of its own (DNS rebinding), so only names that are the server's count: those of the loopback and
 * `ownOrigin`, the `public_url`.
 */
export function isFromLoopback(
  { socket }: RequestMessage,
  { fields, target: { origin } }: Pick<IncomingRequest, 'fields' | 'target'>,
  ownOrigin: string | undefined,
): boolean {
  if (!isLoopback(plainAddress(socket.remoteAddress ?? ''))) return false;
  if (proxyFields.some((name) => fields[name] !== undefined)) return false;
  if ((fields.origin ?? origin) !== origin) return false;
  if (!ownSites.includes(fields['sec-fetch-site'])) return false;
  const host = new URL(origin).hostname.replace(/^\[|\]$/g, '');
  return host === 'localhost' || isLoopback(host) || origin === ownOrigin;
}

function isLoopback(address: string): boolean {
  return cidrsContain(loopback, address);
}
