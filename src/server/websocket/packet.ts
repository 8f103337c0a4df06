import { discard, replyField, type Reply } from '../../http/reply.ts';
import { Failure } from '../../model/failure.ts';
import { contentBytesMax } from '../../api/rules/limits.ts';
import { PreparedJson } from '../../model/prepared-json.ts';

/**
 * An HTTP answer in a message of a websocket (docs/design/operations.md#one-definition,
 * get_content).
 */
export interface ContentPacket {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly contenttype: string | null;
  /** The content as text, if it is UTF-8. */
  readonly content?: PreparedJson;
  /** The content in base64, if it is not UTF-8. */
  readonly content_base64?: PreparedJson;
  readonly source: string;
}

/**
 * Makes the packet of an answer. Rejects with `too_large` for content over the limit of a stored
 * page.
 */
export async function contentPacket(reply: Reply): Promise<ContentPacket> {
  const bytes = await collect(reply);
  // Without a prototype: a field may have any name.
  const headers = Object.create(null) as Record<string, string>;
  for (let at = 0; at < reply.fields.length; at += 2) {
    const name = (reply.fields[at] ?? '').toLowerCase();
    const value = reply.fields[at + 1] ?? '';
    const before = headers[name];
    headers[name] = before === undefined ? value : `${before}, ${value}`;
  }
  const { name, json } = contentMember(bytes);
  return {
    status: reply.status,
    headers,
    contenttype: replyField(reply, 'content-type') ?? null,
    [name]: json,
    source: reply.source,
  };
}

async function collect(reply: Reply): Promise<Buffer> {
  const { body } = reply;
  switch (body.kind) {
    case 'none':
      return Buffer.alloc(0);
    case 'bytes':
      return body.bytes;
    case 'file':
      try {
        requireSize(body.bytesLength);
        return await readParts(body);
      } finally {
        await body.file.close();
      }
    case 'stream': {
      try {
        requireSize(body.bytesLength ?? 0);
        const chunks: Buffer[] = [];
        let bytes = 0;
        for await (const chunk of body.stream as AsyncIterable<Buffer>) {
          bytes += chunk.length;
          requireSize(bytes);
          chunks.push(chunk);
        }
        return Buffer.concat(chunks);
      } finally {
        await discard(reply);
      }
    }
  }
}

async function readParts({
  file,
  parts,
}: Extract<Reply['body'], { kind: 'file' }>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (const part of parts) {
    if (Buffer.isBuffer(part)) {
      pieces.push(part);
      continue;
    }
    const piece = Buffer.allocUnsafe(part.last - part.first + 1);
    for (let filled = 0; filled < piece.length;) {
      const count = await file.read(piece.subarray(filled), part.first + filled);
      if (count === 0)
        throw new Failure(
          'unavailable',
          'The file changed during the request. Send the request again.',
        );
      filled += count;
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function requireSize(bytes: number): void {
  if (bytes <= contentBytesMax) return;
  throw new Failure(
    'too_large',
    `The content has more than ${contentBytesMax} bytes. Fetch it over HTTP, which streams it.`,
  );
}

/** Returns the member for some content. Shared content is encoded once for all clients. */
function contentMember(bytes: Buffer): ContentMember {
  let member = members.get(bytes);
  if (member === undefined) {
    const text = textOf(bytes);
    member =
      text === undefined
        ? { name: 'content_base64', json: new PreparedJson(bytes.toString('base64')) }
        : { name: 'content', json: new PreparedJson(text) };
    members.set(bytes, member);
  }
  return member;
}

interface ContentMember {
  readonly name: 'content' | 'content_base64';
  readonly json: PreparedJson;
}

/** The member of each content that is in memory. */
const members = new WeakMap<Buffer, ContentMember>();

function textOf(bytes: Buffer): string | undefined {
  try {
    // `ignoreBOM` keeps a byte-order mark, so that the packet has the same bytes as the content.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
