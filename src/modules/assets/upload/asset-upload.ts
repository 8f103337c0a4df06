import type { ServicePath } from '../../../core/operations/http/service-path.ts';
import { clientName } from '../../../core/fair/shared-limit.ts';
import { pageFields } from '../../../core/http/content/page.ts';
import { takeParameter } from '../../../core/http/query.ts';
import { type Reply, noBody } from '../../../core/http/reply.ts';
import { outcomeMembers } from '../../../core/operations/http/operations.ts';
import type { Call, OperationResult } from '../../../core/operations/operation.ts';
import { requirePlain } from '../../../core/pipeline/body.ts';
import { type IncomingRequest } from '../../../core/pipeline/incoming-request.ts';
import type { Serving } from '../../../core/pipeline/serving.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import type { Caller } from '../../../core/values/key.ts';
import type { ReceivedFile } from '../asset-files.ts';
import { assetType } from '../asset-type.ts';
import { isAssetName } from '../../rules/asset-name.ts';
import { type Asset, assetFields, assetTable, isDigest } from '../asset.ts';
import {
  type AssetRequest,
  type ExpectedDigests,
  type UploadRange,
  contentRangeOf,
  downloadByHash,
  expectedDigests,
  hashInPath,
  receiveContent,
  tooLarge,
  uploads,
} from './upload-content.ts';

/** The operations whose scopes an upload and a download need, as refusals name them. */
const putName = 'svc1.asset.put';
const getName = 'svc1.asset.get';
/** The operations that write its row. */
const insertName = 'svc1.record.insert';
const editName = 'svc1.record.edit';

/**
 * Answers `{base}/svc1/asset/NAME` (docs/how-to/assets.md): PUT uploads a file, GET and HEAD
 * download it; undefined for any other request. Rejects with
 * `unauthenticated`, `forbidden`, `rate_limited`, or `not_found` or `conflict` for a draft that
 * takes no changes, before the content is read; with `invalid`, `too_large`, `unprocessable` for
 * content that is not what its fields say; `conflict` for a part that does not continue what the
 * server has; `storage_full`.
 */
export const assetPath: ServicePath = (serving, request) => {
  const { path, exchange, incoming } = request;
  const { method } = exchange.head;
  const sha256 = hashInPath(path);
  if (sha256 !== undefined) return answerByHash(serving, { ...request, sha256 });
  if (!path.startsWith('/asset/')) return undefined;
  const name = decodedName(path.slice('/asset/'.length));
  if (method !== 'PUT' && !isAssetName(name)) return undefined;
  if (method === 'OPTIONS') return optionsReply;
  if (!methods.includes(method)) {
    const message = 'An asset takes PUT, GET and HEAD; record.invalidate deletes its row.';
    throw new Failure('method_not_allowed', message, { allow: methods });
  }
  const caller = request.identify();
  if (method !== 'PUT') return download(serving, request, { name, caller });
  requireUploader(serving, incoming, caller);
  if (isAssetName(name)) return upload(serving, request, { name, caller });
  throw new Failure(
    'invalid',
    'The name of an asset has an extension, such as logo.png or photos/harbour.jpg; no part of ' +
      'it is empty or begins with a dot.',
    { field: 'name' },
  );
};

/**
 * Answers `{base}/svc1/asset-file/SHA256`: PUT uploads the file of an import, whose rows come
 * afterwards; the others download one. Rejects as assetPath.
 */
function answerByHash(
  serving: Serving,
  request: AssetRequest & { readonly sha256: string },
): Promise<Reply> {
  const { exchange, incoming, sha256 } = request;
  if (exchange.head.method !== 'PUT') return downloadByHash(serving, request);
  const caller = request.identify();
  requireUploader(serving, incoming, caller);
  if (isDigest(sha256)) return upload(serving, request, { name: sha256, caller, sha256 });
  const message = 'The path ends with the SHA-256 of the file, 64 lower-case hex digits.';
  throw new Failure('invalid', message);
}

/**
 * Requires that a caller may upload, live or in a draft. Throws `forbidden` or `rate_limited`, or
 * `not_found` or `conflict` for a draft that takes no changes.
 */
function requireUploader(serving: Serving, incoming: IncomingRequest, caller: Caller): void {
  const then = { draft: draftOf(incoming), operation: insertName };
  serving.execute.admit({ name: putName, scope: 'design', inDrafts: true }, caller, then);
}

const methods = ['PUT', 'GET', 'HEAD', 'OPTIONS'];

const optionsReply: Reply = {
  status: 204,
  fields: ['Allow', methods.join(', ')],
  body: noBody,
  source: 'svc1',
};

/** The name in a path, whose characters may be encoded; '' for one that is not UTF-8. */
function decodedName(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return '';
  }
}

/** Who uploads or downloads which asset. */
interface NamedAsset {
  readonly name: string;
  readonly caller: Caller;
}

/** The file of an asset, as it is now; a page of the site may not run it (asset-type.ts). */
async function download(
  serving: Serving,
  { exchange, incoming }: AssetRequest,
  { name, caller }: NamedAsset,
): Promise<Reply> {
  const { fields, target, address } = incoming;
  serving.execute.admit({ name: getName, scope: 'read' }, caller);
  const draft = draftOf(incoming);
  const reader = draft === undefined ? serving.assets : serving.assets.inDraft(draft);
  const asset = reader?.asset(name);
  if (asset === undefined) throw noAsset(name);
  const view = {
    status: 200,
    contentType: asset.contenttype,
    fields: ['Cache-Control', 'private, no-cache'],
    source: 'svc1',
  };
  const asked = { method: exchange.head.method, fields, query: target.query, address };
  const { isReusable: _isReusable, ...reply } = await serving.assets.pages.respond(
    asset,
    view,
    asked,
  );
  return reply;
}

function noAsset(name: string): Failure {
  return new Failure('not_found', `There is no asset ${JSON.stringify(name.slice(0, 80))}.`);
}

/** Requires what can be said before the content is read, in the same turn of the event loop. */
function upload(
  serving: Serving,
  request: AssetRequest,
  uploaded: NamedAsset & Pick<Upload, 'sha256'>,
): Promise<Reply> {
  const { fields } = request.incoming;
  const { bytesMax } = serving.config.asset;
  if (serving.config.node.central !== undefined) {
    throw new Failure('conflict', 'This server is a copy: upload to the server that it follows.');
  }
  requirePlain(fields);
  const range = contentRangeOf(fields['content-range'], fields['content-length']);
  const expected = expectedDigests(fields, { isPart: range !== undefined });
  const length = range?.total ?? lengthOf(fields['content-length']);
  if ((length ?? 0) > bytesMax) throw tooLarge(bytesMax);
  const asked = { ...uploaded, range, expected, length };
  request.exchange.body?.pause();
  const answer = (): Promise<Reply> => answerUpload(serving, request, asked);
  return uploads.run(uploaded.caller, answer, request.signal());
}

/** An upload, as its header fields describe it. */
interface Upload extends NamedAsset {
  readonly range: UploadRange | undefined;
  readonly expected: ExpectedDigests;
  /** Bytes of the whole file, if the client says them. */
  readonly length: number | undefined;
  /** The hash that the file of an import has to have; such a file gets no row. */
  readonly sha256?: string;
}

async function answerUpload(
  serving: Serving,
  request: AssetRequest,
  given: Upload,
): Promise<Reply> {
  const { name, caller, range, expected, length, sha256 } = given;
  const { files, prepareTable, share } = serving.assets;
  // Only the same key can continue an upload, and only with the same length.
  const owner = clientName(caller);
  const key = length === undefined ? undefined : { owner, name: JSON.stringify([name, length]) };
  if (range?.first === undefined && range !== undefined) {
    return uploadReply(200, { name, received: await files.interruptedBytes(key) });
  }
  const writer = await files.begin(key, range?.first);
  await receiveContent(request.exchange.body, writer, {
    bytesMax: serving.config.asset.bytesMax,
    end: range?.end,
    digest: expected.part,
  });
  if (range !== undefined && writer.bytes < range.total) {
    const received = writer.bytes;
    await writer.interrupt();
    return uploadReply(202, { name, received });
  }
  const file = await writer.finish(sha256 ?? expected.file);
  // Before its row: a change that is acknowledged has its file on most servers of a cluster.
  await share(file.sha256);
  if (sha256 !== undefined) return uploadReply(200, { sha256, bytes: file.bytes });
  serving.refresh();
  serving.requireUnrevoked(caller);
  await prepareTable();
  return storedReply(await store(serving, request, { name, caller, file }));
}

/** Writes the row of an asset: of a new one, or of one whose content is replaced. */
async function store(
  serving: Serving,
  request: AssetRequest,
  { name, caller, file }: NamedAsset & { readonly file: ReceivedFile },
): Promise<OperationResult> {
  const { sha256, bytes, head } = file;
  const asset: Asset = { name, sha256, bytes, contenttype: assetType(name, head) };
  const v: JsonObject = { table: assetTable, ...assetFields(asset) };
  // The request has counted as one operation, and its caller may do this, in a draft also by the
  // scope `draft`: before its content was read.
  const scopes = new Set([...caller.scopes, 'design'] as const);
  const call = callOf(serving, request, { ...caller, scopes, rate: undefined });
  const insert = () => serving.execute.run(insertName, v, call);
  const edit = () => serving.execute.run(editName, v, call);
  try {
    return await edit();
  } catch (thrown) {
    if (!(thrown instanceof Failure) || thrown.code !== 'not_found') throw thrown;
  }
  try {
    return await insert();
  } catch (thrown) {
    // Another upload of this name was quicker.
    if (!(thrown instanceof Failure) || thrown.code !== 'conflict') throw thrown;
    return edit();
  }
}

function callOf(
  { visitors }: Serving,
  { incoming, exchange, signal }: AssetRequest,
  caller: Caller,
): Call {
  const { target, fields } = incoming;
  const draft = draftOf(incoming);
  return {
    ...{ caller, vk: undefined, qk: undefined, draft, origin: target.origin, fields },
    ...{ visitor: visitors.visitorOf(incoming), transport: 'http', method: exchange.head.method },
    signal,
  };
}

/** The draft that a request names by `?draft=`; undefined for the live site. */
function draftOf({ target }: IncomingRequest): string | undefined {
  return takeParameter(target.query, 'draft')?.value;
}

function storedReply(result: OperationResult): Reply {
  if (result.kind !== 'data') throw new TypeError('a write of a row answers with data');
  const { data, ...others } = outcomeMembers(result) as JsonObject;
  return uploadReply(200, data as JsonObject, others);
}

function uploadReply(status: number, data: JsonObject, others: JsonObject = {}): Reply {
  const bytes = Buffer.from(JSON.stringify({ r: putName, data, ...others }));
  const { received } = data;
  return {
    status,
    fields: [
      ...['Content-Type', 'application/json', 'Content-Length', String(bytes.length)],
      ...(typeof received === 'number' ? ['Upload-Offset', String(received)] : []),
      ...['Cache-Control', 'no-store'],
      ...pageFields,
    ],
    body: { kind: 'bytes', bytes },
    source: 'svc1',
  };
}

function lengthOf(contentLength: string | undefined): number | undefined {
  return contentLength === undefined ? undefined : Number(contentLength);
}
