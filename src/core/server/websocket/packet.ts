import { readContent } from '../../http/content/content.ts';
import { replyField, type Reply } from '../../http/reply.ts';
import { contentBytesMax } from '../../../modules/rules/operations/limits.ts';
import { PreparedJson } from '../../values/json/prepared-json.ts';

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
  const bytes = await readContent(reply, contentBytesMax);
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
