import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { WebSocketServer, type WebSocket } from 'ws';

/** A source that calls a function for each websocket; resolves to its origin. */
export async function socketSource(
  t: TestContext,
  opened: (socket: WebSocket, request: IncomingMessage) => void,
) {
  const server = createServer();
  const sockets = new WebSocketServer({
    server,
    handleProtocols: (protocols) => [...protocols].at(-1) ?? false,
  });
  sockets.on('connection', opened);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const client of sockets.clients) client.terminate();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
