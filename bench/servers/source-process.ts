// The process behind source.ts: answers every request with the same bytes. Arguments: port, bytes
// of content.
import { createServer } from 'node:http';

const [port, bytes] = process.argv.slice(2).map(Number);
const content = Buffer.alloc(bytes ?? 0, 'x');
const fields = [
  'Content-Type',
  'text/html',
  'Content-Length',
  String(content.length),
  'Cache-Control',
  'no-store',
];

createServer({ keepAliveTimeout: 60_000 }, (_request, response) => {
  response.writeHead(200, fields);
  response.end(content);
}).listen(port, '127.0.0.1');
