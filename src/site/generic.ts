import { isEmptyStatus, noBody, withoutFields, type Reply } from '../http/reply.ts';
import type { ContentRequest, Fields } from '../http/request.ts';
import type { FoundRule } from '../model/found.ts';
import { canonicalPath } from '../model/path.ts';
import type { PublicFile } from './page.ts';
import { sendBytes } from './stored.ts';

/**
 * Answers visible URLs whose rule has an engine with that engine's generic page, silently (contract
 * §6).
 */
export interface GenericPages {
  /** `open` answers another path of the same site, undefined where there is nothing. */
  respond(
    found: FoundRule,
    request: ContentRequest,
    open: (request: ContentRequest) => Promise<Reply | undefined>,
  ): Promise<Reply>;
}

const conditional: ReadonlySet<string> = new Set([
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'if-range',
  'range',
]);

/**
 * Makes the answers of generic pages: the rule's `enginedata.page`, else the engine's own page,
 * else the built-in one. The page is the same under every URL that shows it, so its validators are
 * its own; only the status is the rule's.
 */
export function createGenericPages({
  engines,
  builtInPage,
}: {
  readonly engines: readonly { readonly name: string; readonly page: string | undefined }[];
  /** The page shown where none is named, with its entity tag. */
  readonly builtInPage: PublicFile;
}): GenericPages {
  return {
    async respond({ stored }, request, open) {
      const { rule } = stored;
      const named = rule.enginedata?.page;
      const engine = engines.find(({ name }) => name === rule.engine);
      const page = canonicalPath(typeof named === 'string' ? named : (engine?.page ?? ''));
      const status = rule.httpresponse ?? 200;
      const asked =
        status === 200
          ? request
          : {
              ...request,
              // Nothing is opened of what will not be sent.
              method: isEmptyStatus(status) ? 'HEAD' : request.method,
              fields: unconditional(request.fields),
            };
      const opened =
        page === undefined ? undefined : await open({ ...asked, path: page, query: '' });
      const reply = opened ?? sendBuiltIn(asked);
      return withStatus(reply, reply.status === 200 ? status : reply.status, `rule:${rule.id}`);
    },
  };

  function sendBuiltIn(request: ContentRequest): Reply {
    const { bytes, etag, contentType } = builtInPage;
    const representation = {
      status: 200,
      contentType,
      etag,
      lastModifiedMs: undefined,
      fields: ['X-Content-Type-Options', 'nosniff'],
      bytesLength: bytes.length,
    };
    return sendBytes({ representation, bytes }, request, 'none');
  }
}

function withStatus(reply: Reply, status: number, source: string): Reply {
  if (!isEmptyStatus(status) || reply.body.kind !== 'none') return { ...reply, status, source };
  const fields = withoutFields(reply.fields, 'content-type', 'content-length');
  // A 205 says so by its length, a 204 and a 304 by themselves (RFC 9110 §8.6).
  const length = status === 205 ? ['Content-Length', '0'] : [];
  return { status, fields: [...fields, ...length], body: noBody, source };
}

/**
 * A page answered with the rule's own status, such as 404, is sent whole: there is nothing to
 * compare or to cut.
 */
function unconditional(fields: Fields): Fields {
  const others = Object.entries(fields).filter(([name]) => !conditional.has(name));
  return Object.assign(Object.create(null) as Record<string, string>, Object.fromEntries(others));
}
