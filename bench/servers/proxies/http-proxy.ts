// The process behind ../node-proxy.ts: http-proxy with its defaults, but with an agent that keeps
// connections. Arguments: port, origin of the source.
import { Agent, createServer } from 'node:http';
import httpProxy from 'http-proxy';
import { logWhenAnswered } from './access-line.ts';

const [port, target = ''] = process.argv.slice(2);
const proxy = httpProxy.createProxyServer({ target, agent: new Agent({ keepAlive: true }) });

createServer((request, response) => {
  logWhenAnswered(request, response);
  proxy.web(request, response, undefined, ({ message }) => {
    response.writeHead(502).end(message);
  });
}).listen(Number(port), '127.0.0.1');
