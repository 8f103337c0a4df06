import { plainAddress } from '../http/forwarded.ts';
import type { Fields } from '../http/request.ts';
import { cidrsContain, parseCidr } from '../model/cidr.ts';
import type { RequestMessage } from './request-message.ts';

const loopback = ['127.0.0.0/8', '::1'].flatMap((text) => parseCidr(text) ?? []);
/** What a proxy adds: it stands on this machine perhaps, whoever asks it does not. */
const proxyFields = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'];

/** Whether a request was sent by a program on this machine, and by no proxy on behalf of others. */
export function isFromLoopback({ socket }: RequestMessage, fields: Fields): boolean {
  const peer = plainAddress(socket.remoteAddress ?? '');
  return cidrsContain(loopback, peer) && proxyFields.every((name) => fields[name] === undefined);
}
