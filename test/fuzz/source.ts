import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Random } from './random.ts';
import { visitorNames } from './requests.ts';
import { fieldText } from './texts.ts';

const fields = [
  'Age',
  'Cache-Control',
  'CDN-Cache-Control',
  'Connection',
  'Content-Encoding',
  'Content-Length',
  'Content-Location',
  'Content-Range',
  'Content-Type',
  'Date',
  'ETag',
  'Expires',
  'Keep-Alive',
  'Last-Modified',
  'Link',
  'Location',
  'Pragma',
  'Refresh',
  'Retry-After',
  'Server',
  'Set-Cookie',
  'Surrogate-Control',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'Vary',
  'Via',
  'Warning',
  'X-Odd',
] as const;
const controls = [
  'max-age=60',
  'no-store',
  'private',
  'public, max-age=60',
  's-maxage=60',
  'no-cache',
  'max-age=0',
  '',
] as const;
const varies = [
  '',
  'Accept',
  'Accept-Language',
  'Origin',
  'Cookie',
  'Accept, Accept-Encoding',
  '*',
  'X-User',
] as const;

/**
 * Directives that let a shared cache store an answer to a request with credentials (RFC 9111 §3.5).
 */
const shareable = /public|s-maxage|must-revalidate/;

/**
 * A source with hostile responses. It writes the credentials of the request into a response that a
 * shared cache must not give to other clients.
 */
export async function startHostileSource(random: Random): Promise<{
  readonly origin: string;
  readonly server: Server;
}> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    let head = '';
    socket.on('data', (chunk: Buffer) => {
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      const asked = head;
      head = '';
      answer(random, socket, asked);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

function answer(random: Random, socket: Socket, asked: string): void {
  const control = random.pick(controls);
  const lines = [
    `Cache-Control: ${control}`,
    `Vary: ${random.pick(varies)}`,
    'Content-Type: text/html',
  ];
  const count = random.below(4);
  for (let at = 0; at < count; at += 1) {
    lines.push(`${random.pick(fields)}: ${fieldText(random, 6_000)}`);
  }
  const said = lines.join('\r\n');
  // Another random line may allow a shared cache to store it.
  const isPersonal = !shareable.test(said);
  const names = visitorNames(asked);
  const content = `<p>${isPersonal ? names.join(' ') : ''}</p>${'x'.repeat(random.below(3_000))}`;
  const status = random.pick([
    '200 OK',
    '200 OK',
    '200 OK',
    '304 Not Modified',
    '404 Not Found',
    '206 Partial Content',
    '301 Moved',
    '500 Oops',
    '999 Odd',
    '1',
  ]);
  const head = (framing: string): string => `HTTP/1.1 ${status}\r\n${said}\r\n${framing}\r\n`;
  switch (random.below(8)) {
    case 0:
      socket.end(head('Connection: close\r\n') + content, 'latin1');
      return;
    case 1:
      socket.write(
        head('Transfer-Encoding: chunked\r\n') +
          `${content.length.toString(16)}\r\n${content}\r\n0\r\n\r\n`,
        'latin1',
      );
      return;
    case 2:
      socket.write(
        head('Transfer-Encoding: chunked\r\n') + `${fieldText(random, 500)}\r\n`,
        'latin1',
      );
      socket.end();
      return;
    case 3:
      socket.write(head(`Content-Length: ${content.length + 5}\r\n`) + content, 'latin1', () => {
        socket.resetAndDestroy();
      });
      return;
    case 4:
      socket.end(fieldText(random, 40_000), 'latin1');
      return;
    default:
      socket.write(head(`Content-Length: ${content.length}\r\n`) + content, 'latin1');
  }
}
