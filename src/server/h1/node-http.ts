import type { ServerResponse } from 'node:http';
import type { ResponseMessage } from '../http-message.ts';

/**
 * What is used of Node's HTTP. An import of the module, of whatever in it, reads all that it
 * exports, and one of these brings all of Node's fetch along: 45 ms of CPU time at each start.
 */
export const {
  createServer,
  ServerResponse: NodeResponse,
  STATUS_CODES,
} = process.getBuiltinModule('node:http');

/** Whether a response is one of Node's HTTP server. */
export function isNodeResponse(response: ResponseMessage): response is ServerResponse {
  return response instanceof NodeResponse;
}
