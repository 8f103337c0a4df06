import { LRUCache } from 'lru-cache';
import { noBody, type FieldList, type Reply } from '../http/reply.ts';
import { select, type Representation } from '../http/represent.ts';
import type { ContentRequest } from '../http/request.ts';
import type { FoundRule } from '../model/found.ts';
import { storedPagesBytesMax } from '../model/limits.ts';
import type { Rule, RuleContent } from '../model/rule.ts';

interface Page {
  readonly representation: Representation;
  readonly bytes: Buffer;
}

/** Answers from the content that page rules hold. */
export interface StoredPages {
  /** The answer of a rule of kind content, or of a generic page that its own content is. */
  respond(found: FoundRule, request: ContentRequest): Reply;
}

/**
 * Keeps the latest stored pages ready to send. A page is known by its rule and seq, so a prepared
 * one never has to be looked after: an edited rule has another seq.
 */
export function createStoredPages(): StoredPages {
  const pages = new LRUCache<string, Page>({
    maxSize: storedPagesBytesMax,
    sizeCalculation: ({ bytes }) => bytes.length + 512,
  });

  return {
    respond({ stored, variesByLanguage }, request) {
      const { rule, seq } = stored;
      const key = `${rule.id} ${seq} ${variesByLanguage ? 'v' : ''}`;
      let page = pages.get(key);
      if (page === undefined) {
        page = preparePage(rule, seq, variesByLanguage);
        pages.set(key, page);
      }
      return sendBytes(page, request, `rule:${rule.id}`);
    },
  };
}

/**
 * The answer that sends a representation held in memory, as the request's preconditions and ranges
 * ask for it.
 */
export function sendBytes(
  { representation, bytes }: Page,
  request: Pick<ContentRequest, 'method' | 'fields'>,
  source: string,
): Reply {
  const { status, fields, parts } = select(representation, request);
  const [part] = parts;
  if (part === undefined) return { status, fields, body: noBody, source };
  const pieces = parts.map((one) =>
    Buffer.isBuffer(one) ? one : bytes.subarray(one.first, one.last + 1),
  );
  return {
    status,
    fields,
    body: {
      kind: 'bytes',
      bytes: pieces.length === 1 ? (pieces[0] ?? bytes) : Buffer.concat(pieces),
    },
    source,
  };
}

function preparePage(rule: Rule, seq: number, variesByLanguage: boolean): Page {
  const bytes = contentBytes(rule.content);
  const fields: FieldList = [
    ...(rule.lang === undefined ? [] : ['Content-Language', rule.lang]),
    ...(variesByLanguage ? ['Vary', 'Accept-Language'] : []),
    'X-Content-Type-Options',
    'nosniff',
  ];
  return {
    bytes,
    representation: {
      status: rule.httpresponse ?? 200,
      contentType: rule.contenttype ?? 'text/html; charset=utf-8',
      etag: `"${rule.id}.${seq.toString(36)}"`,
      lastModifiedMs: undefined,
      fields,
      bytesLength: bytes.length,
    },
  };
}

function contentBytes(content: RuleContent | undefined): Buffer {
  if (content === undefined) return Buffer.alloc(0);
  return typeof content === 'string' ? Buffer.from(content) : Buffer.from(content.base64, 'base64');
}
