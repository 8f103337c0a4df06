import type { ServiceRequest } from '../../../core/operations/http/service-path.ts';
import { createHash } from 'node:crypto';
import { type Dictionary, parseDictionary } from 'structured-headers';
import { SharedLimit } from '../../../core/fair/shared-limit.ts';
import { requireIntactBody } from '../../../core/http/content/content.ts';
import type { Reply } from '../../../core/http/reply.ts';
import { passContentOn } from '../../../core/pipeline/body.ts';
import type { RequestBody } from '../../../core/pipeline/exchange.ts';
import type { Serving } from '../../../core/pipeline/serving.ts';
import { Failure, failureFrom } from '../../../core/values/failure.ts';
import type { AssetWriter } from '../asset-files.ts';
import { isDigest } from '../asset.ts';

const sha256Bytes = 32;

/** The operation whose scope a download needs, as refusals name it. */
const fileName = 'svc1.asset.file';

/** Uploads that a process receives at the same time. */
export const uploadsAtOnceMax = 32;

/** Further uploads that wait for a place, and how long. */
export const uploadsWaitingMax = 64;
export const uploadWaitMs = 10_000;

/** The uploads that this process receives: their clients decide how long they take. */
export const uploads = new SharedLimit({
  what: 'uploads',
  limit: 'uploads',
  held: 'long',
  max: uploadsAtOnceMax,
  waiting: { max: uploadsWaitingMax, ms: uploadWaitMs },
  retryAfterSeconds: 2,
});

/**
 * Writes the content of a request, at the pace of the disk. Rejects with the failure of the writer,
 * with `too_large`, with `unprocessable` for content of another digest, which is taken back, and
 * with `invalid` if the client closes the connection before the end: what has
 * arrived is kept then, if the upload can be continued.
 */
export async function receiveContent(
  body: RequestBody | undefined,
  writer: AssetWriter,
  {
    bytesMax,
    end,
    digest,
  }: {
    readonly bytesMax: number;
    readonly end: number | undefined;
    /** The SHA-256 that the content has to have, in lower-case hex. */
    readonly digest: string | undefined;
  },
): Promise<void> {
  if (body === undefined) return;
  const first = writer.bytes;
  const hash = digest === undefined ? undefined : createHash('sha256');
  passContentOn(body);
  try {
    await readTo(body, async (chunk) => {
      if (writer.bytes + chunk.length > (end ?? Infinity)) throw invalidRange();
      if (writer.bytes + chunk.length > bytesMax) throw tooLarge(bytesMax);
      hash?.update(chunk);
      await writer.write(chunk);
    });
    const received = hash?.digest('hex');
    if (received !== digest) {
      await writer.takeBack(first);
      throw otherContent(received, digest);
    }
  } catch (thrown) {
    // The parts before this one are right.
    const isCut =
      !(thrown instanceof Failure) || ['invalid', 'unprocessable'].includes(thrown.code);
    await (isCut ? writer.interrupt() : writer.discard());
    throw failureFrom(thrown);
  }
}

function otherContent(received = '', expected = ''): Failure {
  const message = `The content has the SHA-256 ${received} instead of ${expected}: send it again.`;
  return new Failure('unprocessable', message, { field: 'content-digest' });
}

/** Reads the content piece by piece; the connection stays open for the answer. */
function readTo(body: RequestBody, write: (chunk: Buffer) => Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    let writing: Promise<void> = Promise.resolve();
    const stop = (thrown: unknown): void => {
      body.off('data', take).off('end', finish).off('close', cut).off('error', fail);
      // A later error has no other listener.
      body.on('error', () => undefined).pause();
      const rejectWith = (): void => {
        reject(thrown instanceof Error ? thrown : failureFrom(thrown));
      };
      writing.then(rejectWith, rejectWith);
    };
    const take = (chunk: Buffer): void => {
      body.pause();
      writing = write(chunk).then(() => {
        body.resume();
      });
      writing.catch(stop);
    };
    const finish = (): void => {
      body.off('close', cut).off('error', fail);
      writing.then(resolve, reject);
    };
    const fail = (error?: Error): void => {
      const text = 'The upload ended before its content was complete. Continue it, or repeat it.';
      stop(error instanceof Failure ? error : new Failure('invalid', text, { cause: error }));
    };
    const cut = (): void => {
      fail();
    };
    try {
      requireIntactBody(body);
    } catch (failure) {
      reject(failureFrom(failure));
      return;
    }
    if (body.destroyed) {
      fail();
      return;
    }
    body.on('error', fail).once('close', cut).once('end', finish).on('data', take);
    body.resume();
  });
}

/** The failure of a file with more bytes than `[asset] max`. */
export function tooLarge(bytesMax: number): Failure {
  return new Failure('too_large', `An asset may have ${bytesMax} bytes: see [asset] max.`, {
    limit: 'content_size',
  });
}

/** A request below `{base}/svc1`. */
export type AssetRequest = Pick<
  ServiceRequest,
  'path' | 'exchange' | 'incoming' | 'identify' | 'signal'
>;

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
  { sha256, exchange, incoming, identify }: AssetRequest & { readonly sha256: string },
): Promise<Reply> {
  const { method } = exchange.head;
  if (method !== 'GET' && method !== 'HEAD') {
    throw new Failure('method_not_allowed', 'The file of an asset takes PUT, GET and HEAD.', {
      allow: ['PUT', 'GET', 'HEAD'],
    });
  }
  serving.execute.admit({ name: fileName, scope: 'follow' }, identify());
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

/** The part of a file that a request brings (RFC 9110 §14.4, §14.5). */
export interface UploadRange {
  /** The first byte; undefined for a request that only asks how far the upload is. */
  readonly first: number | undefined;
  /** Behind the last byte. */
  readonly end: number;
  /** Bytes of the whole file. */
  readonly total: number;
}

/**
 * Parses Content-Range of an upload: `bytes 100-199/200`, or, in a request without content, a `*`
 * for the positions, which asks how much the server has. Throws `invalid` for anything else, and
 * for another Content-Length.
 */
export function contentRangeOf(
  value: string | undefined,
  contentLength: string | undefined,
): UploadRange | undefined {
  if (value === undefined) return undefined;
  const found = /^bytes (?:(\d{1,15})-(\d{1,15})|\*)\/(\d{1,15})$/i.exec(value.trim());
  if (found === null) throw invalidRange();
  const [, first, last] = found;
  const total = Number(found[3]);
  if (first === undefined) {
    if (Number(contentLength ?? 0) > 0) throw invalidRange();
    return { first: undefined, end: 0, total };
  }
  const bytes = Number(last) - Number(first) + 1;
  if (bytes < 1 || Number(last) >= total) throw invalidRange();
  if (contentLength !== undefined && Number(contentLength) !== bytes) throw invalidRange();
  return { first: Number(first), end: Number(last) + 1, total };
}

/** The failure of a Content-Range that does not describe the content. */
function invalidRange(): Failure {
  return new Failure(
    'invalid',
    'Content-Range has to be such as bytes 100-199/200, with a Content-Length of 100.',
    { field: 'content-range' },
  );
}

/** The SHA-256 that the fields of a request say, in lower-case hex; undefined without one. */
export interface ExpectedDigests {
  /** That of the whole file. */
  readonly file: string | undefined;
  /** That of the content of this request alone, if it is a part of the file. */
  readonly part: string | undefined;
}

/**
 * The digests of Repr-Digest and Content-Digest (RFC 9530 §2, §3): the second one is about the
 * content of one message, so about the file only if the message has all of it. Ignores other
 * algorithms. Throws `invalid` for a field that cannot be parsed.
 */
export function expectedDigests(
  fields: Readonly<Record<string, string | string[] | undefined>>,
  { isPart }: { readonly isPart: boolean },
): ExpectedDigests {
  const file = digestIn('repr-digest', fields['repr-digest']);
  const content = digestIn('content-digest', fields['content-digest']);
  return isPart ? { file, part: content } : { file: file ?? content, part: undefined };
}

function digestIn(name: string, value: string | string[] | undefined): string | undefined {
  if (value === undefined) return undefined;
  let parsed: Dictionary;
  try {
    parsed = parseDictionary([value].flat().join(', '));
  } catch {
    throw invalidDigest(name);
  }
  const found: unknown = parsed.get('sha-256')?.[0];
  if (found === undefined) return undefined;
  if (!(found instanceof ArrayBuffer) || found.byteLength !== sha256Bytes) {
    throw invalidDigest(name);
  }
  return Buffer.from(found).toString('hex');
}

function invalidDigest(name: string): Failure {
  return new Failure('invalid', `${name} has to be such as sha-256=:…:, in base64.`, {
    field: name,
  });
}
