import type { IncomingMessage, ServerResponse } from 'node:http';
import { destination, pino } from 'pino';

/** pino writes lines together in pieces of this size, which takes the least CPU time. */
const bunchBytes = 4_096;

/**
 * A log on stdout with one line of JSON for each response, with the fields of Waymark's access log:
 * client, request, status and duration.
 */
export const accessLog = pino(destination({ dest: 1, minLength: bunchBytes, sync: false }));

/** Writes the line when the response has been sent. */
export function logWhenAnswered(request: IncomingMessage, response: ServerResponse): void {
  const startedMs = performance.now();
  response.once('finish', () => {
    accessLog.info(
      {
        address: request.socket.remoteAddress,
        method: request.method,
        host: request.headers.host,
        target: request.url,
        status: response.statusCode,
        bytes: Number(response.getHeader('content-length')),
        ms: performance.now() - startedMs,
      },
      'request',
    );
  });
}
