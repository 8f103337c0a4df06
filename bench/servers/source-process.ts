// The process behind source.ts: sends the same bytes to every request. Arguments: port, bytes of
// content.
import { createServer } from 'node:http';

const [port, bytes] = process.argv.slice(2).map(Number);
const content = Buffer.alloc(bytes ?? 0, 'x');
const fields = ['Content-Type', 'text/html', 'Content-Length', String(content.length)];
const passing = [...fields, 'Cache-Control', 'no-store'];
const kept = [...fields, 'Cache-Control', 'max-age=3600'];

createServer({ keepAliveTimeout: 60_000 }, ({ url = '' }, response) => {
  response.writeHead(200, url.startsWith('/kept/') ? kept : passing);
  response.end(content);
}).listen(port, '127.0.0.1');
