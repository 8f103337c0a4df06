import { createHash } from 'node:crypto';
import { type Page, replyWithPage } from '../../../core/http/content/page-reply.ts';
import { pageFields } from '../../../core/http/content/page.ts';
import { type FieldList, type Reply, withoutFields } from '../../../core/http/reply.ts';
import { utf8Type } from '../../../core/http/representation/mediatype.ts';
import type { ContentRequest } from '../../../core/http/request.ts';
import { unpooled } from '../../../core/values/json/prepared-json.ts';
import { withCodings } from '../../compression/compressed-reply.ts';
import type { Compressors } from '../../compression/compressors.ts';
import type { CompressiblePage } from '../../compression/page-compressor.ts';
import type { FoundRule, Rule, RuleContent, StoredRule } from '../rule.ts';

/** Replies with the content of page rules. */
export interface StoredPages {
  /** The reply of a rule with content. */
  respond(found: FoundRule, request: Pick<ContentRequest, 'method' | 'fields' | 'address'>): Reply;
}

/**
 * Creates the replies. A prepared page lives as long as its rule object; an edit makes a new one,
 * so nothing has to be invalidated.
 */
export function createStoredPages({ pages: compressor, responses }: Compressors): StoredPages {
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
      const reply = { ...compressor.respond(page, request), isReusable: true } as const;
      const pieces = noncePieces(stored);
      if (pieces === undefined) return reply;
      const whole = replyWithPage(page.identity, { method: 'GET', fields: {} });
      const withNonce = async (nonce: string): Promise<Reply> =>
        withCodings(nonceReply(whole, pieces, nonce), request, responses);
      return { ...reply, withNonce };
    },
  };
}

/** The place for a nonce in a page, as an attribute of `script` or `style`. */
const noncePlace = 'nonce="${nonce}"';
const piecesOfPages = new WeakMap<StoredRule, readonly string[] | undefined>();

/** The parts of an HTML page between its places for a nonce; undefined without any. */
function noncePieces(stored: StoredRule): readonly string[] | undefined {
  if (piecesOfPages.has(stored)) return piecesOfPages.get(stored);
  const { content } = stored.rule;
  const isHtml = typeof content === 'string' && /^text\/html\b/i.test(contentType(stored.rule));
  const pieces = isHtml && content.includes(noncePlace) ? content.split(noncePlace) : undefined;
  piecesOfPages.set(stored, pieces);
  return pieces;
}

/** A page with a nonce: it is sent once, so it has no validators and no ranges. */
function nonceReply(whole: Reply, pieces: readonly string[], nonce: string): Reply {
  const bytes = Buffer.from(pieces.join(`nonce="${nonce}"`));
  const kept = withoutFields(whole.fields, 'etag', 'accept-ranges', 'content-length');
  const caching = ['Cache-Control', 'private, no-store'];
  const fields = [...kept, 'Content-Length', String(bytes.length), ...caching];
  const { status, source } = whole;
  return { status, fields, body: { kind: 'bytes', bytes }, source, isPrivate: true };
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
