import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The other servers of a soak run: the source of fetched pages, and the receiver of a webhook. */
export interface Peers {
  readonly origin: string;
  /** How many deliveries the receiver got. */
  delivered(): number;
  close(): void;
}

/** Starts both on the loopback: `/kept/` may be cached for five seconds, `/passed/` never. */
export async function startPeers(): Promise<Peers> {
  let delivered = 0;
  const server = createServer((request, response) => {
    const { url = '' } = request;
    request.resume();
    if (url === '/hook') {
      delivered += 1;
      response.writeHead(204).end();
      return;
    }
    const cacheControl = url.startsWith('/kept/') ? 'max-age=5' : 'no-store';
    response.writeHead(200, { 'content-type': 'text/html', 'cache-control': cacheControl });
    response.end(`<p>${url}</p>`.repeat(100));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    delivered: () => delivered,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
