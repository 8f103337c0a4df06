import { noBody } from '../../core/http/reply.ts';
import { type ServicePath, methodReply } from '../../core/operations/http/service-path.ts';
import { Failure } from '../../core/values/failure.ts';

/** The documentation as it was built. It throws `not_found` if it was not. */
export const docsPath: ServicePath = (serving, { path, exchange, incoming }) => {
  if (path !== '/docs' && !path.startsWith('/docs/')) return undefined;
  const { config, publicFiles, ownFiles } = serving;
  const { docs } = publicFiles;
  if (docs.size === 0) {
    throw new Failure('not_found', 'The documentation is not built: run `npm run docs`.');
  }
  // Links of the documentation are relative to its folder.
  if (path === '/docs') {
    const fields = ['Location', `${config.server.base}/svc1/docs/`, 'Content-Length', '0'];
    return methodReply(exchange) ?? { status: 308, fields, body: noBody, source: 'svc1' };
  }
  const found = docs.get(path.slice('/docs/'.length));
  if (found === undefined) return undefined;
  const { file, fields } = found;
  const asked = { method: exchange.head.method, fields: incoming.fields };
  return methodReply(exchange) ?? ownFiles.respond(file, { fields, source: 'svc1' }, asked);
};
