import { call, fetchPage, service, type Json, type JsonObject } from '../api/api.ts';
import { siteOf } from './address.ts';
import { madeOf, withoutLoader } from '../components/framed-page.ts';
import { previewInput, type VisitorInput } from '../components/visitor-fields.tsx';
import { texts } from '../texts.ts';
import { isObject } from '../api/json.ts';

const t = texts.editor;

/** The fields of a page rule that a preview needs, as they are in the form. */
export interface PreviewedPage {
  readonly kind: string;
  readonly path: string;
  readonly origin: string;
  readonly contenttype: string;
  readonly lang: string;
  readonly engine: string;
  readonly table: string;
  readonly content: string;
  readonly enginedata: Json;
}

/** A page as a visitor gets it, as far as the form has it. */
export interface RenderedPage {
  /** Undefined for a page that the form cannot show. */
  readonly html?: string;
  /** What an engine makes for the element of a generic page. */
  readonly part?: string;
  /** In what it differs from the page that a visitor gets; or why there is none. */
  readonly notes: readonly string[];
  /** Why it is without what its engine makes. */
  readonly failure?: unknown;
  /** The branch of `enginedata.when`; undefined without one. */
  readonly matched?: string | undefined;
  /** The branches of the form; undefined if its conditions are those that the server evaluates. */
  readonly branches?: readonly string[] | undefined;
}

/** The part of an answer of get_render that templates use. */
interface RenderAnswer extends JsonObject {
  readonly id: string;
  readonly matched: string;
}

interface RenderOptions {
  readonly visitor: VisitorInput;
  /** The branch of `when` to show where the server does not know the conditions of the form. */
  readonly branch: string;
  readonly signal: AbortSignal;
}

/**
 * Renders a page for a visitor. The server evaluates the conditions of the saved rule; content and
 * data are those of the form. `saved` is undefined for a new page. Rejects with the failure of a
 * template.
 */
export async function renderPage(
  page: PreviewedPage,
  saved: (JsonObject & { readonly id: string }) | undefined,
  { visitor, branch, signal }: RenderOptions,
): Promise<RenderedPage> {
  const { kind, content, engine, enginedata } = page;
  if (kind === 'content' && content !== '') return { html: contentHtml(page), notes: [] };
  const why = whyNone(page, saved);
  if (why !== undefined) return { notes: [why] };
  const { when, ...rest } = isObject(enginedata) ? enginedata : {};
  const savedData = isObject(saved?.enginedata) ? saved.enginedata : {};
  const isKnown =
    JSON.stringify(conditionsOf(when)) === JSON.stringify(conditionsOf(savedData.when));
  const needsServer = Array.isArray(when) || engine !== 'html';
  const found =
    saved && needsServer ? await answerFor(saved, page, { visitor, signal }) : undefined;
  const chosen = isKnown || branch === '' ? found?.matched : branch;
  const matched = Array.isArray(when) ? (chosen ?? 'default') : undefined;
  const data = { ...rest, ...branchData(when, matched, rest) };
  const answer = { ...noAnswer(page), ...found, ...ownFields(page), enginedata: data };
  const made = await madeOf(answer, signal);
  return {
    ...made,
    html: await genericPage(page, data, signal),
    matched,
    ...(!isKnown && { branches: branchesOf(when) }),
  };
}

/** Why the form cannot show a page; undefined if it can. */
function whyNone(
  { kind, content, engine, enginedata }: PreviewedPage,
  saved: JsonObject | undefined,
): string | undefined {
  if (kind === 'content.fetch') return saved === undefined ? t.fetchedLater : t.fetched;
  if (kind === 'resolve') return t.resolves;
  if (typeof saved?.asset === 'string') return t.assetPreview(saved.asset);
  if (engine === '') return kind === 'content' && content === '' ? t.emptyPreview : t.noEngine;
  return isObject(enginedata) || enginedata === null ? undefined : t.badJson;
}

/** The generic page without what its engine makes: that of the data, else the built-in one. */
async function genericPage(
  { origin }: PreviewedPage,
  { page }: JsonObject,
  signal: AbortSignal,
): Promise<string> {
  const css = new URL('page.css', service).href;
  const builtIn =
    '<meta name="viewport" content="width=device-width, initial-scale=1">' +
    `<link rel="stylesheet" href="${css}"><main id="waymark"></main>`;
  if (typeof page !== 'string' || !page.startsWith('/')) return builtIn;
  const place = { origin: siteOf(origin), path: page };
  const response = await fetchPage(place, { signal }).catch((error: unknown) => {
    if (signal.aborted) throw error;
    return undefined;
  });
  const isHtml = response?.headers.get('content-type')?.includes('html') === true;
  return response?.ok === true && isHtml ? withoutLoader(await response.text()) : builtIn;
}

function contentHtml({ content, contenttype }: PreviewedPage): string {
  if (contenttype === '' || contenttype.includes('html')) return content;
  // As browsers do with a picture that has an address of its own: none of its scripts runs.
  if (contenttype.startsWith('image/svg')) {
    return `<img alt="" src="data:image/svg+xml,${encodeURIComponent(content)}">`;
  }
  return `<pre>${content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</pre>`;
}

/** The fields of the form that an engine gets. */
function ownFields({ kind, engine, table }: PreviewedPage) {
  return { kind, engine, table: table === '' ? null : table };
}

/** What get_render answers for a page that is not saved. */
function noAnswer({ path, origin, lang }: PreviewedPage): JsonObject {
  return {
    id: '',
    path,
    origin,
    lang: lang === '' ? null : lang,
    query: {},
    capture: null,
    user: null,
  };
}

/** The answer of get_render for the visitor; undefined if another rule answers. */
async function answerFor(
  saved: JsonObject & { readonly id: string },
  { path, origin }: PreviewedPage,
  { visitor, signal }: { readonly visitor: VisitorInput; readonly signal: AbortSignal },
): Promise<RenderAnswer | undefined> {
  const place = {
    origin: siteOf(origin),
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

/** The names of the branches, as get_render calls them, with their conditions. */
function branchesOf(when: Json | undefined): readonly string[] {
  return conditionsOf(when).map((condition) => JSON.stringify(condition ?? {}));
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
