import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { chooseRenderBranch, renderWhenOf } from '../breadcrumbs/render-when.ts';
import type { Dependencies } from '../breadcrumbs/when.ts';
import type { CompressiblePage, PageCompressor } from '../compression/page-compressor.ts';
import { parametersOf } from '../http/query.ts';
import { withoutFields, type Reply } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import { withVary } from '../http/vary.ts';
import { Failure } from '../model/failure.ts';
import type { JsonObject } from '../model/json.ts';
import type { FoundRule, Rule, StoredRule } from '../model/rule.ts';
import { needsUser, type Visitor } from '../model/visitor.ts';
import type { Log } from '../observability/log.ts';
import { cacheUse, type CacheUse } from '../observability/memory-use.ts';
import { renderedPagesBytesMax, shortLivedMs } from './limits.ts';
import { readPageText, type PageText } from './page-text.ts';
import type { SharedRendering } from './shared-rendering.ts';
import { TemplateError, type TemplateAnswer, type TemplateThread } from './template-thread.ts';

/** Replies with pages of the engine `template` that the server renders. */
export interface RenderedPages {
  /**
   * The reply of a rule that an engine renders: rendered if its enginedata has `render: "server"`
   * for this visitor, else its generic page. `open` gives the generic page with the status of the
   * rule. Rejects with `internal` if the template fails, `unavailable` if too many pages wait.
   */
  respond(
    found: FoundRule,
    request: ContentRequest,
    open: (request: ContentRequest) => Promise<Reply>,
  ): Promise<Reply>;
  memory(): CacheUse;
}

/** Whether the server may render the pages of a rule. */
export function mayRender({ engine, enginedata }: Rule): boolean {
  if (engine !== 'template' || enginedata === undefined) return false;
  return enginedata.render === 'server' || enginedata.when !== undefined;
}

/** A page that was rendered, and everything that it depends on. */
interface RenderedPage {
  readonly pageTag: string;
  /** Undefined if the template failed. */
  readonly page: CompressiblePage | undefined;
  /** Milliseconds since 1970 after which the page is rendered again. */
  readonly untilMs: number;
  readonly bytes: number;
}

/** One rendering: the rule, for one visitor. */
interface Rendering {
  readonly found: FoundRule;
  readonly answer: TemplateAnswer;
  readonly variesByUser: boolean;
  readonly dependencies: Dependencies | undefined;
  /** Equal for renderings of the same rule with the same variables. */
  readonly key: string;
}

interface RenderedPagesParts {
  readonly thread: Pick<TemplateThread, 'page' | 'html'>;
  readonly shared: SharedRendering;
  readonly compressor: PageCompressor;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
}

/** Creates the replies. */
export function createRenderedPages(parts: RenderedPagesParts): RenderedPages {
  const { compressor } = parts;
  const cache = new PageCache(parts);
  return {
    async respond(found, request, open) {
      const rendering = await renderingOf(parts.shared, found, request);
      if (rendering === undefined) return open(request);
      const opened = await readPageText(request, open);
      if (opened.text === undefined) return opened.reply;
      const { page, untilMs } = await cache.pageOf(rendering, opened);
      if (page === undefined) throw templateFailure;
      const reply = compressor.respond(page, request);
      return withSharing(reply, rendering, {
        isReusable: opened.isReusable,
        isCurrent: untilMs === Infinity ? undefined : (nowMs) => nowMs < untilMs,
      });
    },
    memory: () => cache.memory(),
  };
}

/** Renders pages, and keeps them as long as nothing that they depend on has changed. */
class PageCache {
  readonly #parts: RenderedPagesParts;
  readonly #pending = new Map<string, Promise<RenderedPage>>();
  readonly #pages = new LRUCache<string, RenderedPage>({
    maxSize: renderedPagesBytesMax,
    sizeCalculation: ({ bytes }, key) => bytes + 2 * key.length + pageOverheadBytes,
  });

  constructor(parts: RenderedPagesParts) {
    this.#parts = parts;
  }

  /** The page of a rendering; the same ones at the same time are rendered once. */
  pageOf(rendering: Rendering, page: PageText): Promise<RenderedPage> | RenderedPage {
    const { key } = rendering;
    const kept = this.#pages.get(key);
    if (kept?.pageTag === page.tag && this.#parts.now() < kept.untilMs) return kept;
    const work = `${key}\n${page.tag}`;
    let made = this.#pending.get(work);
    if (made === undefined) {
      made = this.#render(rendering, page).finally(() => this.#pending.delete(work));
      this.#pending.set(work, made);
    }
    return made;
  }

  memory(): CacheUse {
    return cacheUse('rendered pages', this.#pages);
  }

  async #render({ answer, found, key }: Rendering, page: PageText): Promise<RenderedPage> {
    const { thread, now, log } = this.#parts;
    const { rule } = found.stored;
    const isShortLived = timeWords.test(JSON.stringify(answer.enginedata));
    let untilMs = isShortLived ? now() + shortLivedMs : Infinity;
    let text: string | undefined;
    try {
      text = await thread.page(page.text, answer);
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error;
      log.warn({ rule: rule.id, reason: error.message }, 'the template of a page failed');
      const { html } = answer.enginedata;
      if (typeof html === 'string' && html.trim() !== '') {
        text = await thread.html(page.text, answer);
      }
      untilMs = now() + shortLivedMs;
    }
    const prepared = text === undefined ? undefined : this.#prepare(text, rule, page);
    const bytes = prepared?.identity.bytes.length ?? 0;
    const rendered = { pageTag: page.tag, page: prepared, untilMs, bytes };
    this.#pages.set(key, rendered);
    return rendered;
  }

  #prepare(text: string, rule: Rule, { status, fields }: PageText): CompressiblePage {
    const bytes = Buffer.from(text);
    const representation = {
      status,
      contentType: 'text/html; charset=utf-8',
      etag: `"${digestOf(JSON.stringify(fields), bytes)}"`,
      lastModifiedMs: undefined,
      fields,
      bytesLength: bytes.length,
    };
    return this.#parts.compressor.prepare({ representation, bytes }, `rule:${rule.id}`);
  }
}

/**
 * What has to be rendered for a visitor; undefined if the server does not render the page. Its key
 * has the variables that the template mentions, so that other parts of the request do not count.
 */
async function renderingOf(
  shared: SharedRendering,
  found: FoundRule,
  request: ContentRequest,
): Promise<Rendering | undefined> {
  const { enginedata, dependencies } = await enginedataFor(found.stored, request);
  if (enginedata.render !== 'server') return undefined;
  const names = shared.variablesOf(shared.templatesOf(enginedata));
  const variesByUser = names.includes('user');
  const { visitor, origin, path, query } = request;
  if (variesByUser) await visitor.prepare(needsUser);
  const { rule, seq } = found.stored;
  const answer: TemplateAnswer = {
    enginedata,
    query: parametersOf(query),
    capture: found.capture ?? null,
    user: variesByUser ? (visitor.user() ?? null) : null,
    origin,
    path,
    lang: rule.lang ?? null,
    rows: {},
  };
  // A page without a title is named after its address.
  const named = typeof enginedata.title === 'string' ? names : [...names, 'origin', 'path'];
  const used = named.map((name) => (answer as unknown as JsonObject)[name] ?? null);
  const key = JSON.stringify([rule.id, seq, enginedataKey(enginedata), used]);
  return { found, answer, variesByUser, dependencies, key };
}

/** What an entry takes besides its bytes and its key. */
const pageOverheadBytes = 2_048;

const templateFailure = new Failure(
  'internal',
  'This page cannot be shown: its template failed. The server’s log says why.',
);

/** Templates with these words may show another text each time. */
const timeWords = /\b(?:now|today|sample)\b/;

/** The enginedata of a rule for a visitor, by its branches. */
async function enginedataFor(
  stored: StoredRule,
  { visitor, query }: { readonly visitor: Visitor; readonly query: string },
): Promise<{
  readonly enginedata: JsonObject;
  readonly dependencies: Dependencies | undefined;
}> {
  const renderWhen = renderWhenOf(stored);
  if (renderWhen === undefined) {
    return { enginedata: stored.rule.enginedata ?? {}, dependencies: undefined };
  }
  const { dependencies } = renderWhen;
  if (dependencies.needs !== undefined) await visitor.prepare(dependencies.needs);
  const { answer } = chooseRenderBranch(renderWhen, stored, { visitor, query });
  return { enginedata: answer, dependencies };
}

const digests = new WeakMap<JsonObject, string>();

/** A short text that identifies an enginedata, made once for each object. */
function enginedataKey(enginedata: JsonObject): string {
  let digest = digests.get(enginedata);
  if (digest === undefined) {
    digest = digestOf(JSON.stringify(enginedata));
    digests.set(enginedata, digest);
  }
  return digest;
}

function digestOf(...parts: readonly (string | Buffer)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('base64url').slice(0, 22);
}

/** Says who may have a reply: everybody, or only its visitor. */
function withSharing(
  reply: Reply,
  { variesByUser, dependencies }: Rendering,
  reuse: Pick<Reply, 'isCurrent'> & { readonly isReusable: boolean },
): Reply {
  const vary = [
    ...(variesByUser ? ['Authorization', 'Cookie'] : []),
    ...(dependencies?.vary ?? []),
  ];
  if (!variesByUser && dependencies === undefined) {
    const { isCurrent } = reuse;
    const fields = [...reply.fields, 'Cache-Control', 'no-cache'];
    return { ...reply, fields, ...(reuse.isReusable && { isReusable: true, isCurrent }) };
  }
  const fields = [...withoutFields(reply.fields, 'cache-control'), 'Cache-Control', privateValue];
  return { ...reply, fields: withVary(fields, ...vary) };
}

const privateValue = 'private, no-cache';
