// The process behind ../node-proxy.ts: fastify with @fastify/reply-from and their defaults, that
// is, undici and kept connections. Arguments: port, origin of the source.
import replyFrom from '@fastify/reply-from';
import fastify from 'fastify';
import { logWhenAnswered } from './access-line.ts';

const [port, base = ''] = process.argv.slice(2);
const server = fastify();
server.addHook('onRequest', (request, reply, done) => {
  logWhenAnswered(request.raw, reply.raw);
  done();
});
await server.register(replyFrom, { base });
server.all('/*', (request, reply) => reply.from(request.url));
await server.listen({ port: Number(port), host: '127.0.0.1' });
