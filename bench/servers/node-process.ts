// The process behind node.ts: bare Node with one file in memory and an access log. Arguments: port, file; and for
// TLS its port, certificate and key.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createSecureServer, type ServerHttp2Stream } from 'node:http2';
import { WebSocketServer } from 'ws';
import { accessLog, logWhenAnswered } from './proxies/access-line.ts';

const [port, file = '', tlsPort, cert = '', key = ''] = process.argv.slice(2);
const content = readFileSync(file);
const etag = '"1k"';
const fields = { 'content-type': 'text/html', 'content-length': content.length, etag };

const http = createServer((request, response) => {
  logWhenAnswered(request, response);
  if (request.headers['if-none-match'] === etag) response.writeHead(304, { etag }).end();
  else response.writeHead(200, fields).end(content);
}).listen(Number(port), '127.0.0.1');

if (tlsPort !== undefined) {
  const files = { cert: readFileSync(cert), key: readFileSync(key) };
  const secure = createSecureServer(files).listen(Number(tlsPort), '127.0.0.1');
  // The stream API costs less than that of requests and responses.
  secure.on('stream', (stream: ServerHttp2Stream, headers) => {
    const startedMs = performance.now();
    stream.respond({ ':status': 200, ...fields });
    stream.end(content);
    accessLog.info(
      {
        address: stream.session?.socket.remoteAddress,
        method: headers[':method'],
        host: headers[':authority'],
        target: headers[':path'],
        status: 200,
        bytes: content.length,
        ms: performance.now() - startedMs,
      },
      'request',
    );
  });
  const sockets = new WebSocketServer({ noServer: true });
  http.on('upgrade', (request, socket, ahead) => {
    const startedMs = performance.now();
    sockets.handleUpgrade(request, socket, ahead, (opened) => {
      opened.on('message', (message) => {
        opened.send(message, { binary: false });
      });
      opened.on('close', () => {
        const { method, url: target } = request;
        accessLog.info({ method, target, ms: performance.now() - startedMs }, 'websocket');
      });
    });
  });
  secure.on('unknownProtocol', (socket) => http.emit('connection', socket));
}
