import { pageFields } from '../http/page-fields.ts';
import { createHash } from 'node:crypto';
import { utf8Type } from '../http/mediatype.ts';
import type { FieldList, Reply } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import type { FoundRule } from '../model/found.ts';
import { ownBytes } from '../model/own-bytes.ts';
import type { Rule, RuleContent, StoredRule } from '../model/rule.ts';
import type { PageCompressor, CompressiblePage } from '../compression/page-compressor.ts';
import type { Page } from '../http/held-page.ts';

/** Answers from the content that page rules hold. */
export interface StoredPages {
  /** The answer of a rule of kind content, or of a generic page that its own content is. */
  respond(found: FoundRule, request: Pick<ContentRequest, 'method' | 'fields'>): Reply;
}

/**
 * Keeps stored pages ready to send, each as long as somebody keeps its rule: an edit makes another
 * rule, so a prepared page never has to be looked after.
 */
export function createStoredPages(compressor: PageCompressor): StoredPages {
  const alike = new WeakMap<StoredRule, CompressiblePage>();
  const varying = new WeakMap<StoredRule, CompressiblePage>();

  return {
    respond({ stored, variesByLanguage }, request) {
      const pages = variesByLanguage ? varying : alike;
      let page = pages.get(stored);
      if (page === undefined) {
        page = compressor.prepare(preparePage(stored, variesByLanguage), `rule:${stored.rule.id}`);
        pages.set(stored, page);
      }
      return { ...compressor.respond(page, request), isReusable: true };
    },
  };
}

/** The status of a rule's own page, before preconditions and ranges. */
export function pageStatus({ httpresponse }: Pick<Rule, 'httpresponse'>): number {
  return httpresponse ?? 200;
}

function preparePage({ rule }: StoredRule, variesByLanguage: boolean): Page {
  const bytes = ownBytes(contentBytes(rule.content));
  const fields: FieldList = [
    ...(rule.lang === undefined ? [] : ['Content-Language', rule.lang]),
    ...(variesByLanguage ? ['Vary', 'Accept-Language'] : []),
    ...pageFields,
  ];
  const said = { status: pageStatus(rule), contentType: contentType(rule), fields };
  return {
    bytes,
    representation: {
      ...said,
      etag: entityTag(said, bytes),
      lastModifiedMs: undefined,
      bytesLength: bytes.length,
    },
  };
}

/**
 * A strong entity tag (RFC 9110 §8.8.3), of all that is sent: the seq of a rule may come a second
 * time, after a backup was put back, and stand for another page.
 */
function entityTag(said: object, bytes: Buffer): string {
  const hash = createHash('sha256').update(JSON.stringify(said)).update(bytes);
  return `"${hash.digest('base64url').slice(0, 22)}"`;
}

/** What is stored as text is sent as UTF-8, and what is stored as bytes as it is. */
function contentType({ contenttype = 'text/html; charset=utf-8', content }: Rule): string {
  return typeof content === 'string' ? utf8Type(contenttype, content) : contenttype;
}

function contentBytes(content: RuleContent | undefined): Buffer {
  if (content === undefined) return Buffer.alloc(0);
  return typeof content === 'string' ? Buffer.from(content) : Buffer.from(content.base64, 'base64');
}
