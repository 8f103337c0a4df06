import { call, service, type Json, type JsonObject } from '../api/api.ts';
import { engineHtml, isShownEngine } from '../components/engine-html.ts';
import { previewInput, type VisitorInput } from '../components/visitor-fields.tsx';

/** The fields of a page rule that a preview needs, as they are in the form. */
export interface PreviewedPage {
  readonly kind: string;
  readonly path: string;
  readonly origin: string;
  readonly contenttype: string;
  readonly lang: string;
  readonly engine: string;
  readonly content: string;
  readonly enginedata: Json;
}

/** A page as a visitor gets it, as far as the form has it. */
export interface RenderedPage {
  /** Undefined for a page that the form cannot show. */
  readonly html: string | undefined;
  /** The branch of `enginedata.when`; undefined without one. */
  readonly matched: string | undefined;
  /** Whether the conditions in the form are not those that the server has evaluated. */
  readonly hasOtherConditions: boolean;
  /** Whether it shows rows of tables. */
  readonly hasRows?: boolean;
}

/** The part of an answer of get_render that templates use. */
interface RenderAnswer extends JsonObject {
  readonly id: string;
  readonly matched: string;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Renders a page for a visitor. The server evaluates the conditions of the saved rule; content and
 * data are those of the form. `saved` is undefined for a new page. Rejects with the failure of a
 * template.
 */
export async function renderPage(
  page: PreviewedPage,
  saved: (JsonObject & { readonly id: string }) | undefined,
  { visitor, signal }: { readonly visitor: VisitorInput; readonly signal: AbortSignal },
): Promise<RenderedPage> {
  const { kind, content, engine, enginedata } = page;
  if (kind === 'content' && content !== '') {
    return { html: contentHtml(page), matched: undefined, hasOtherConditions: false };
  }
  if (!isShownEngine(engine) || !isObject(enginedata)) {
    return { html: undefined, matched: undefined, hasOtherConditions: false };
  }
  const { when, ...rest } = enginedata;
  const needsServer = Array.isArray(when) || engine === 'template';
  const found =
    saved && needsServer ? await answerFor(saved, page, { visitor, signal }) : undefined;
  const matched = Array.isArray(when) ? (found?.matched ?? 'default') : undefined;
  const savedData = isObject(saved?.enginedata) ? saved.enginedata : {};
  const data = { ...rest, ...branchData(when, matched, rest) };
  const answer = { ...noAnswer(page), ...found, enginedata: data };
  const { html, hasRows } = await engineHtml(engine, answer, signal);
  return {
    html: withoutScripts(engine, html),
    hasRows,
    matched,
    hasOtherConditions:
      JSON.stringify(conditionsOf(when)) !== JSON.stringify(conditionsOf(savedData.when)),
  };
}

/** The engine removes scripts from what a template makes; the frame does not run them. */
function withoutScripts(engine: string, html: string): string {
  if (engine !== 'template') return html;
  return `<meta http-equiv="Content-Security-Policy" content="script-src 'none'">${html}`;
}

function contentHtml({ content, contenttype }: PreviewedPage): string {
  if (contenttype === '' || contenttype.includes('html')) return content;
  return `<pre>${content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</pre>`;
}

/** What get_render answers for a page that is not saved. */
function noAnswer({ path, origin, lang }: PreviewedPage): JsonObject {
  return { path, origin, lang: lang === '' ? null : lang, query: {}, capture: null, user: null };
}

/** The answer of get_render for the visitor; undefined if another rule answers. */
async function answerFor(
  saved: JsonObject & { readonly id: string },
  { path, origin }: PreviewedPage,
  { visitor, signal }: { readonly visitor: VisitorInput; readonly signal: AbortSignal },
): Promise<RenderAnswer | undefined> {
  const place = {
    origin: origin === '*' ? service.origin : origin,
    path: path.replace(/\*$/, ''),
  };
  const answer = await call<RenderAnswer>(
    'userinterface.get_render',
    { ...place, ...previewInput(visitor) },
    { signal },
  ).catch((error: unknown) => {
    if (signal.aborted) throw error;
    return undefined;
  });
  return answer?.id === saved.id ? answer : undefined;
}

function conditionsOf(when: Json | undefined): readonly Json[] {
  if (!Array.isArray(when)) return [];
  return (when as readonly Json[]).map((branch) => (isObject(branch) ? (branch.if ?? null) : null));
}

function branchData(
  when: Json | undefined,
  matched: string | undefined,
  rest: JsonObject,
): JsonObject {
  const [, digits] = /^when\[(\d+)\]$/.exec(matched ?? '') ?? [];
  if (digits === undefined || !Array.isArray(when)) return {};
  const branch = (when as readonly Json[])[Number(digits)];
  const patch = isObject(branch) ? branch.enginedata : undefined;
  return isObject(patch) ? mergePatch(rest, patch) : {};
}

/** JSON Merge Patch (RFC 7396 §2) of objects, as the server applies a branch. */
function mergePatch(target: JsonObject, patch: JsonObject): JsonObject {
  const merged = new Map(Object.entries(target));
  for (const [name, value] of Object.entries(patch)) {
    const before = merged.get(name);
    if (value === null) merged.delete(name);
    else if (isObject(value)) merged.set(name, mergePatch(isObject(before) ? before : {}, value));
    else merged.set(name, value);
  }
  return Object.fromEntries(merged);
}
