import type { Config } from '../../config/config.ts';
import { replyField, type Reply } from '../../http/reply.ts';
import { isSecure } from '../incoming-request.ts';
import type { RequestMessage } from '../http-message.ts';

/**
 * Adds Strict-Transport-Security to an answer if the ini file has it: over TLS only (RFC 6797
 * §7.2), and not if the answer already has the field.
 */
export function withHsts(reply: Reply, { hsts }: Config['tls'], message: RequestMessage): Reply {
  if (hsts === undefined || !isSecure(message)) return reply;
  if (replyField(reply, 'strict-transport-security') !== undefined) return reply;
  return { ...reply, fields: [...reply.fields, 'Strict-Transport-Security', hsts] };
}
