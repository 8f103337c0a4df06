// The process behind ../node-proxy.ts: httpxy with its defaults, but with an agent that keeps
// connections. Arguments: port, origin of the source.
import { Agent, createServer } from 'node:http';
import { createProxyServer } from 'httpxy';
import { logWhenAnswered } from './access-line.ts';

const [port, target = ''] = process.argv.slice(2);
const proxy = createProxyServer({ target, agent: new Agent({ keepAlive: true }) });

createServer((request, response) => {
  logWhenAnswered(request, response);
  proxy.web(request, response).catch((error: unknown) => {
    response.writeHead(502).end(String(error));
  });
}).listen(Number(port), '127.0.0.1');
