import type { IncomingMessage, ServerResponse } from 'node:http';
import { destination, pino } from 'pino';

/** Log lines are handed over in pieces of so many bytes, the cheapest that pino can. */
const bunchBytes = 4_096;

/**
 * A log on stdout that gets one line of JSON for each answer, with what Waymark's own says: who
 * asked for what, what came of it, and how long that took.
 */
export const accessLog = pino(destination({ dest: 1, minLength: bunchBytes, sync: false }));

/** Has the line written when the answer has gone out. */
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
