import { isDigest } from '../asset.ts';
import type { Reply } from '../../../core/http/reply.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { Caller } from '../../../core/values/key.ts';
import type { Exchange } from '../../../core/pipeline/exchange.ts';
import {
  authenticateRequest,
  type IncomingRequest,
} from '../../../core/pipeline/incoming-request.ts';
import type { Serving } from '../../../core/pipeline/serving.ts';

/** A request below `{base}/svc1`. */
export interface AssetRequest {
  readonly path: string;
  readonly exchange: Exchange;
  readonly incoming: IncomingRequest;
  readonly signal: () => AbortSignal;
}

/** The operation whose scope a download needs, as refusals name it. */
const fileName = 'svc1.asset.file';

/** The hash in a path such as `/asset-file/SHA256`; undefined for another path. */
export function hashInPath(path: string): string | undefined {
  const prefix = '/asset-file/';
  return path.startsWith(prefix) ? path.slice(prefix.length) : undefined;
}

/**
 * Answers a GET or HEAD of `{base}/svc1/asset-file/SHA256`: a file for a node that follows this
 * server, which knows its hash from the log (docs/design/nodes.md#files-of-assets). Rejects with
 * `not_found`.
 */
export async function downloadByHash(
  serving: Serving,
  { sha256, exchange, incoming }: Omit<AssetRequest, 'path'> & { readonly sha256: string },
  identified: (caller: Caller) => void,
): Promise<Reply> {
  const { method } = exchange.head;
  if (method !== 'GET' && method !== 'HEAD') {
    throw new Failure('method_not_allowed', 'The file of an asset takes PUT, GET and HEAD.', {
      allow: ['PUT', 'GET', 'HEAD'],
    });
  }
  const caller = authenticateRequest(serving, incoming);
  identified(caller);
  serving.execute.admit({ name: fileName, scope: 'follow' }, caller);
  const { files, missing } = serving.assets;
  const bytesHere = () => (isDigest(sha256) ? files.bytesOf(sha256) : undefined);
  // A node of a cluster may know a row some milliseconds before its file has come.
  const bytes =
    (await bytesHere()) ??
    (isDigest(sha256) && (await missing?.getSoon(sha256)) === true ? await bytesHere() : undefined);
  if (bytes === undefined) throw new Failure('not_found', 'This server has no such file.');
  const contenttype = 'application/octet-stream';
  const fields = ['Cache-Control', 'private, no-store'];
  const view = { status: 200, contentType: contenttype, fields, source: 'svc1' };
  const { fields: sent, address } = incoming;
  const asked = { method, fields: sent, query: '', address };
  const asset = { name: sha256, sha256, bytes, contenttype };
  return serving.assets.pages.respondFromFile(asset, view, asked);
}
