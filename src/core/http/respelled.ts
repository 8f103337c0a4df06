import { sentUrlOf } from '../values/path.ts';
import { noBody, type Reply } from './reply.ts';
import type { RequestTarget } from './request.ts';

/**
 * The redirect to another spelling of a request's target, on the same origin; the client repeats
 * method and content (308, RFC 9110 §15.4.9). `source` is as in Reply.
 */
export function respelledReply(target: RequestTarget, source: string): Reply {
  // A reference that begins with two slashes would name a host (RFC 3986 §4.2).
  const origin = target.sentPath.startsWith('//') ? target.origin : '';
  const location = sentUrlOf({ ...target, origin });
  return {
    status: 308,
    fields: ['Location', location, 'Content-Length', '0'],
    body: noBody,
    source,
  };
}
