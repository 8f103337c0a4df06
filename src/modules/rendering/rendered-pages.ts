import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { SharedTasks } from '../../core/fair/shared-tasks.ts';
import { parametersOf } from '../../core/http/query.ts';
import { type Reply, withVary, withoutFields } from '../../core/http/reply.ts';
import type { ContentRequest } from '../../core/http/request.ts';
import { type Visitor, needsUser } from '../../core/http/visitor.ts';
import type { Dependencies } from '../../core/pipeline/conditions/when.ts';
import type { Log } from '../../core/report/log.ts';
import { type CacheUse, cacheUse } from '../../core/report/memory-use.ts';
import { spanned } from '../../core/report/trace.ts';
import { Failure, type FailureCode } from '../../core/values/failure.ts';
import { type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import { MIB } from '../../core/values/units.ts';
import { chooseRenderBranch, renderWhenOf } from '../breadcrumbs/branches.ts';
import type { CompressiblePage, PageCompressor } from '../compression/page-compressor.ts';
import type { FoundRule, Rule, StoredRule } from '../rules/rule.ts';
import type { RowReader } from '../rules/site-access.ts';
import { type PageText, readPageText } from './page-text.ts';
import type { SharedRendering } from './shared-rendering.ts';
import { type TemplateAnswer, TemplateError, type TemplateThreads } from './template-threads.ts';

/** Memory of rendered pages. */
const renderedPagesBytesMax = 32 * MIB;

/** How long the cache keeps a page that shows the current time, or a failure. */
const shortLivedMs = 10_000;

/** Replies with pages of the engine `template` that the server renders. */
export interface RenderedPages {
  /**
   * The reply of a rule that an engine renders: rendered if its enginedata has `render: "server"`
   * for this visitor, else its generic page. `open` gives the generic page with the status of the
   * rule. Rejects with `internal` if the template fails, `unavailable` if too many pages wait, and
   * as `rows` does.
   */
  respond(
    found: FoundRule,
    request: ContentRequest,
    from: {
      readonly open: (request: ContentRequest) => Promise<Reply>;
      readonly rows: RowReader;
    },
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
  /** The version of its generic page and of its tables. */
  readonly version: string;
  /** The generic page and the rows that it shows; undefined for a failure. */
  readonly digest: string | undefined;
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
  /** The names of the tables whose rows it shows. */
  readonly tables: readonly string[];
  /** Equal for renderings of the same rule with the same variables. */
  readonly key: string;
}

/** The input of a rendering besides its rule and variables. */
interface Given {
  readonly page: PageText;
  /** The version of the generic page and of the tables. */
  readonly version: string;
  /** The address of the client. */
  readonly address: string;
  /** Calls record.get. */
  readonly get: (input: JsonObject) => Promise<JsonObject>;
}

interface RenderedPagesParts {
  readonly thread: Pick<TemplateThreads, 'page' | 'html' | 'rowInputs' | 'turns'>;
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
    async respond(found, request, { open, rows }) {
      const rendering = await renderingOf(parts.shared, { found, request, rows });
      if (rendering === undefined) return open(request);
      const opened = await readPageText(request, open);
      if (opened.text === undefined) return opened.reply;
      const { page, untilMs } = await cache.pageOf(rendering, {
        page: opened,
        version: `${opened.tag} ${rows.version(rendering.tables)}`,
        address: request.address,
        get: (input) => rows.get(input, request),
      });
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
  readonly #tasks: SharedTasks<RenderedPage>;
  readonly #pages = new LRUCache<string, RenderedPage>({
    maxSize: renderedPagesBytesMax,
    sizeCalculation: ({ bytes }, key) => bytes + 2 * key.length + pageOverheadBytes,
  });

  constructor(parts: RenderedPagesParts) {
    this.#parts = parts;
    this.#tasks = new SharedTasks(parts.thread.turns);
  }

  /** The page of a rendering; the same ones at the same time are rendered once. */
  pageOf(rendering: Rendering, given: Given): Promise<RenderedPage> | RenderedPage {
    const { key } = rendering;
    const kept = this.#pages.get(key);
    const isCurrent = kept !== undefined && this.#parts.now() < kept.untilMs;
    if (isCurrent && kept.version === given.version) return kept;
    const work = `${key}\n${given.version}`;
    const former = isCurrent ? kept : undefined;
    const client = { keyId: undefined, address: given.address };
    return this.#tasks.run(work, client, () => this.#renew(rendering, given, former));
  }

  memory(): CacheUse {
    return cacheUse('rendered pages', this.#pages);
  }

  /** Reads the rows, and renders the page unless it would be the same as before. */
  async #renew(
    rendering: Rendering,
    given: Given,
    former: RenderedPage | undefined,
  ): Promise<RenderedPage> {
    const attributes = { 'waymark.rule': rendering.found.stored.rule.id };
    const rendered = await spanned('render', attributes, () =>
      this.#renewed(rendering, given, former),
    );
    this.#pages.set(rendering.key, rendered);
    return rendered;
  }

  async #renewed(
    { found, answer, tables }: Rendering,
    { page, version, get }: Given,
    former: RenderedPage | undefined,
  ): Promise<RenderedPage> {
    const { thread, now, log } = this.#parts;
    const { rule } = found.stored;
    const { enginedata } = answer;
    try {
      const rows = tables.length === 0 ? {} : await this.#rowsOf(answer, get);
      const digest = digestOf(page.tag, JSON.stringify(rows));
      if (former?.digest === digest) return { ...former, version };
      const text = await thread.page(page.text, { ...answer, rows });
      const isShortLived = timeWords.test(JSON.stringify(enginedata));
      const untilMs = isShortLived ? now() + shortLivedMs : Infinity;
      return { version, digest, untilMs, ...this.#prepare(text, rule, page) };
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error;
      log.warn({ rule: rule.id, reason: error.message }, 'the template of a page failed');
      const { html } = enginedata;
      const made = { version, digest: undefined, untilMs: now() + shortLivedMs };
      if (typeof html !== 'string' || html.trim() === '') {
        return { ...made, page: undefined, bytes: 0 };
      }
      const text = await thread.html(page.text, answer);
      return { ...made, ...this.#prepare(text, rule, page) };
    }
  }

  /** The rows of a page by their names. Rejects with a TemplateError for a mistake in the rule. */
  async #rowsOf(answer: TemplateAnswer, get: Given['get']): Promise<JsonObject> {
    const { shared, thread } = this.#parts;
    const { enginedata } = answer;
    const isPlain = shared.rowTemplatesOf(enginedata).length === 0;
    const inputs = isPlain ? (enginedata.rows as JsonObject) : await thread.rowInputs(answer);
    try {
      return await shared.readRows(inputs, get);
    } catch (error) {
      if (!(error instanceof Failure) || !mistakes.has(error.code)) throw error;
      throw new TemplateError(`Its rows cannot be read: ${error.message}`);
    }
  }

  #prepare(
    text: string,
    rule: Rule,
    { status, fields }: PageText,
  ): Pick<RenderedPage, 'page' | 'bytes'> {
    const bytes = Buffer.from(text);
    const representation = {
      status,
      contentType: 'text/html; charset=utf-8',
      etag: `"${digestOf(JSON.stringify(fields), bytes)}"`,
      lastModifiedMs: undefined,
      fields,
      bytesLength: bytes.length,
    };
    const page = this.#parts.compressor.prepare(
      { representation, bytes },
      { source: `rule:${rule.id}` },
    );
    return { page, bytes: bytes.length };
  }
}

/**
 * What has to be rendered for a visitor; undefined if the server does not render the page. Its key
 * has the variables that the template mentions, so that other parts of the request do not count.
 */
async function renderingOf(
  shared: SharedRendering,
  {
    found,
    request,
    rows,
  }: { readonly found: FoundRule; readonly request: ContentRequest; readonly rows: RowReader },
): Promise<Rendering | undefined> {
  const { enginedata, dependencies } = await enginedataFor(found.stored, request);
  if (enginedata.render !== 'server') return undefined;
  const shown = shared.variablesOf(shared.templatesOf(enginedata));
  const tables = shown.includes('rows') ? tablesOf(enginedata) : [];
  const inRows = tables.length === 0 ? [] : shared.variablesOf(shared.rowTemplatesOf(enginedata));
  const names = [...new Set([...shown, ...inRows])].filter((name) => name !== 'rows');
  const variesByUser = names.includes('user') || rows.variesByUser(tables);
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
  const whose = variesByUser ? ['user'] : [];
  const used = [...named, ...whose].map((name) => (answer as unknown as JsonObject)[name] ?? null);
  const key = JSON.stringify([rule.id, seq, enginedataKey(enginedata), used]);
  return { found, answer, variesByUser, dependencies, tables, key };
}

/** The names of the tables in enginedata.rows. */
function tablesOf({ rows }: JsonObject): readonly string[] {
  const inputs = isJsonObject(rows) ? Object.values(rows) : [];
  const names = inputs.flatMap((input) => (isJsonObject(input) ? [input.table] : []));
  return [...new Set(names)].filter((name) => typeof name === 'string');
}

/** The failures of record.get that a designer has to mend. */
const mistakes: ReadonlySet<FailureCode> = new Set([
  ...(['invalid', 'unauthenticated', 'forbidden', 'not_found', 'too_large'] as const),
]);

/** The memory of an entry besides its bytes and its key. */
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
  return { enginedata: answer(), dependencies };
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

/** Sets whether caches may give a reply to other visitors. */
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
  return { ...reply, fields: withVary(fields, ...vary), isPrivate: true };
}

const privateValue = 'private, no-cache';
