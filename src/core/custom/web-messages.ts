import { Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createZstdDecompress } from 'node:zlib';
import { type FieldList, type Reply, discard, noBody, replyField } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';

/** How much of a file is read at a time. */
const filePieceBytes = 65_536;

/** Methods that a Request of the Fetch standard cannot have (§2.2.1). */
const notFetched: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK']);

/** The parts of a request that a module sees. */
type SeenRequest = Pick<
  ContentRequest,
  'method' | 'origin' | 'sentPath' | 'query' | 'fields' | 'body'
>;

/** A request as a Request of the Fetch standard; undefined for a method that it does not have. */
export function webRequest({
  method,
  origin,
  sentPath,
  query,
  fields,
  body,
}: SeenRequest): Request | undefined {
  if (notFetched.has(method)) return undefined;
  const headers = new Headers();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) headers.set(name, value);
  }
  const url = `${origin}${sentPath}${query === '' ? '' : `?${query}`}`;
  const hasBody = body !== undefined && method !== 'GET' && method !== 'HEAD';
  return new Request(url, {
    ...{ method, headers },
    ...(hasBody && { body: Readable.toWeb(body) as ReadableStream, duplex: 'half' }),
  });
}

/** Fields that the server decides itself. */
const ownFields: ReadonlySet<string> = new Set([
  ...['connection', 'content-length', 'keep-alive', 'server-timing'],
  ...['trailer', 'transfer-encoding', 'upgrade'],
]);

/**
 * The reply of a Response, whose content goes to the client as it comes. Throws TypeError for what
 * is no Response, and for one whose content was read already.
 */
export function replyOf(response: unknown, source: string): Reply {
  if (!(response instanceof Response)) {
    throw new TypeError(`the answer is no Response: ${described(response)}`);
  }
  const { status, headers, body, bodyUsed } = response;
  if (bodyUsed) throw new TypeError('the content of the Response was read already');
  if (status === 0) throw new TypeError('the Response is that of an error');
  const fields = [...headers].filter(([name]) => !ownFields.has(name)).flat();
  if (body === null)
    return { status, fields: [...fields, 'Content-Length', '0'], body: noBody, source };
  const stream = Readable.fromWeb(body);
  return { status, fields, body: { kind: 'stream', stream, bytesLength: undefined }, source };
}

function described(value: unknown): string {
  return typeof value === 'object' && value !== null ? value.constructor.name : String(value);
}

/** Statuses of answers without content (Fetch §2.2.3), which a Response must not have. */
const withoutContent: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);

/** A reply as a Response, and the way back. */
export interface ShownReply {
  readonly response: Response;
  /** The reply of what a module makes of it; the same one if it returns the same Response. */
  back(made: unknown, source: string): Promise<Reply>;
}

/**
 * Shows a reply as a Response. Its content is read, and decoded, when the module reads it: a file
 * that it does not look at is sent as without the module.
 */
export function shownReply(reply: Reply): ShownReply {
  const { status, fields } = reply;
  const coding = replyField(reply, 'content-encoding');
  const headers = new Headers();
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = fields[at] ?? '';
    if (!isOfCoding(name)) headers.append(name, fields[at + 1] ?? '');
  }
  const hasContent = reply.body.kind !== 'none' && !withoutContent.has(status);
  const content = hasContent ? lazyContent(reply, coding) : null;
  const response = new Response(content, { status, headers });
  return {
    response,
    async back(made, source) {
      if (made === response && !response.bodyUsed) return reply;
      const changed = replyOf(made, source);
      if (content === null || (made as Response).body !== response.body) {
        // Another content: what it replaces is of no use, unless the module has read it.
        if (!response.bodyUsed) await discard(reply);
      }
      return {
        ...changed,
        fields: withoutValidators(changed.fields),
        source: reply.source,
        ...(reply.ownFields && { ownFields: reply.ownFields }),
        ...(reply.isPrivate && { isPrivate: true }),
        ...(reply.guards && { guards: reply.guards }),
        ...(reply.failureId !== undefined && { failureId: reply.failureId }),
        ...(reply.reason !== undefined && { reason: reply.reason }),
        ...(reply.cache && { cache: reply.cache }),
      };
    },
  };
}

/** The codings that a Response shows decoded. */
function isOfCoding(name: string): boolean {
  return /^content-(?:encoding|length)$/i.test(name);
}

/** The validators of the former content are none of the new one. */
function withoutValidators(fields: FieldList): FieldList {
  const names = /^(?:etag|last-modified|accept-ranges|content-range)$/i;
  return fields.filter((_, at) => !names.test(fields[at - (at % 2)] ?? ''));
}

function lazyContent(reply: Reply, coding: string | undefined): ReadableStream<Uint8Array> {
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        reader ??= (Readable.toWeb(decoded(pieces(reply), coding)) as ReadableStream).getReader();
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await (reader === undefined ? discard(reply) : reader.cancel());
      },
    },
    { highWaterMark: 0 },
  );
}

function decoded(content: Readable, coding: string | undefined): Readable {
  const decoder =
    coding === 'br'
      ? createBrotliDecompress()
      : coding === 'gzip'
        ? createGunzip()
        : coding === 'zstd'
          ? createZstdDecompress()
          : undefined;
  if (decoder === undefined) return content;
  content.once('error', (error) => decoder.destroy(error));
  return content.pipe(decoder);
}

function pieces({ body }: Reply): Readable {
  if (body.kind === 'stream') return body.stream;
  if (body.kind === 'bytes') return Readable.from([body.bytes]);
  return Readable.from(body.kind === 'file' ? filePieces(body) : []);
}

async function* filePieces({
  file,
  parts,
}: Extract<Reply['body'], { kind: 'file' }>): AsyncGenerator<Buffer> {
  try {
    for (const part of parts) {
      if (Buffer.isBuffer(part)) {
        yield part;
        continue;
      }
      for (let at = part.first; at <= part.last;) {
        const piece = Buffer.alloc(Math.min(filePieceBytes, part.last - at + 1));
        const bytes = await file.read(piece, at);
        if (bytes === 0) throw new Error('the file has become shorter');
        at += bytes;
        yield piece.subarray(0, bytes);
      }
    }
  } finally {
    await file.close();
  }
}
