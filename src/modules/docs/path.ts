import { pageFields } from '../../core/http/content/page.ts';
import { noBody } from '../../core/http/reply.ts';
import { type ServicePath, methodReply } from '../../core/operations/http/service-path.ts';
import { Failure } from '../../core/values/failure.ts';
import type { DocsFiles } from './docs-files.ts';
import type { Documents } from './documents.ts';

/** Answers with the documentation as it was built; throws `not_found` if it was not. */
export const docsPath =
  (docs: DocsFiles): ServicePath =>
  ({ config, ownFiles }, { path, exchange, incoming }) => {
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

/** Answers with the documents of the operations. */
export const documentsPath =
  (documents: Documents): ServicePath =>
  ({ ownFiles }, { path, exchange, incoming }) => {
    const file = documents.file(path, incoming.target.origin);
    if (file === undefined) return undefined;
    const asked = { method: exchange.head.method, fields: incoming.fields };
    return (
      methodReply(exchange) ?? ownFiles.respond(file, { fields: openFields, source: 'svc1' }, asked)
    );
  };

/** Tools of other origins load the documents. */
const openFields = [
  ...['Cache-Control', 'public, no-cache', ...pageFields],
  ...['Access-Control-Allow-Origin', '*'],
];
