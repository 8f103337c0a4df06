import { createHash } from 'node:crypto';
import type { PageCompressor, CompressiblePage } from '../compression/page-compressor.ts';
import type { Page } from '../http/prepared-page.ts';
import { utf8Type } from '../http/mediatype.ts';
import { pageFields } from '../http/page-fields.ts';
import type { FieldList, Reply } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import { unpooled } from '../model/unpooled.ts';
import type { FoundRule, Rule, RuleContent, StoredRule } from '../model/rule.ts';

/** Replies with the content of page rules. */
export interface StoredPages {
  /** The reply of a rule with content. */
  respond(found: FoundRule, request: Pick<ContentRequest, 'method' | 'fields'>): Reply;
}

/**
 * Creates the replies. A prepared page lives as long as its rule object; an edit makes a new one,
 * so nothing has to be invalidated.
 */
export function createStoredPages(compressor: PageCompressor): StoredPages {
  const sharedPages = new WeakMap<StoredRule, CompressiblePage>();
  const pagesByLanguage = new WeakMap<StoredRule, CompressiblePage>();

  return {
    respond({ stored, variesByLanguage }, request) {
      const pages = variesByLanguage ? pagesByLanguage : sharedPages;
      let page = pages.get(stored);
      if (page === undefined) {
        page = compressor.prepare(pageOf(stored, variesByLanguage), {
          source: `rule:${stored.rule.id}`,
        });
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

function pageOf({ rule }: StoredRule, variesByLanguage: boolean): Page {
  const bytes = unpooled(contentBytes(rule.content));
  const fields: FieldList = [
    ...(rule.lang === undefined ? [] : ['Content-Language', rule.lang]),
    ...(variesByLanguage ? ['Vary', 'Accept-Language'] : []),
    ...pageFields,
  ];
  const described = { status: pageStatus(rule), contentType: contentType(rule), fields };
  return {
    bytes,
    representation: {
      ...described,
      etag: entityTag(described, bytes),
      lastModifiedMs: undefined,
      bytesLength: bytes.length,
    },
  };
}

/**
 * A strong entity tag (RFC 9110 §8.8.3): a hash of everything that is sent. The seq of a rule would
 * not do, since after the restore of a backup the same seq may stand for another page.
 */
function entityTag(described: object, bytes: Buffer): string {
  const hash = createHash('sha256').update(JSON.stringify(described)).update(bytes);
  return `"${hash.digest('base64url').slice(0, 22)}"`;
}

/** Text is sent as UTF-8, so its charset is set to that; bytes keep their type. */
function contentType({ contenttype = 'text/html; charset=utf-8', content }: Rule): string {
  return typeof content === 'string' ? utf8Type(contenttype, content) : contenttype;
}

function contentBytes(content: RuleContent | undefined): Buffer {
  if (content === undefined) return Buffer.alloc(0);
  return typeof content === 'string' ? Buffer.from(content) : Buffer.from(content.base64, 'base64');
}
