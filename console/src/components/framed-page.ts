import { call, type JsonObject } from '../api/api.ts';
import { texts } from '../texts.ts';
import { engineHtml, isShownEngine, type EngineAnswer } from './engine-html.ts';

/** A page for a frame in which no script may ask the server for data. */
export interface FramedPage {
  readonly html: string;
  /** What the engine of a generic page makes for the element of the page. */
  readonly part?: string;
  /** In what it differs from the page that a visitor gets. */
  readonly notes?: readonly string[];
  /** Why the page is without what its engine makes. */
  readonly failure?: unknown;
}

// They take time in proportion to the text, whatever it is.
const emptyScripts = /<script\b([^<>]*)>\s*<\/script\s*>/gi;
const source = /(?:^|[\s"'/])src\s*=/i;
const serverMark = /<[a-z][^<>]*\sdata-waymark-server\b/i;

/** The HTML of a page without the script that loads the data of a generic page. */
export function withoutLoader(html: string): string {
  return html.replace(emptyScripts, (script, attributes: string) =>
    attributes.includes('/svc1/engine.js') && source.test(attributes) ? '' : script,
  );
}

/**
 * The page with what its engine makes of the data of `input`, an input of get_render, in place of
 * the script that would load the data.
 */
export async function framedPage(
  html: string,
  input: JsonObject,
  signal: AbortSignal,
): Promise<FramedPage> {
  const rest = withoutLoader(html);
  if (rest === html || serverMark.test(rest)) return { html: rest };
  try {
    const answer = await call<RenderInformation>('userinterface.get_render', input, { signal });
    return { html: rest, ...(await madeOf(answer, signal)) };
  } catch (failure) {
    if (signal.aborted) throw failure;
    return { html: rest, failure };
  }
}

/** What the engine of a page makes; the HTML of its data if it fails, as /svc1/engine.js does. */
export async function madeOf(
  { engine, ...answer }: EngineAnswer & { readonly engine: string | null },
  signal: AbortSignal,
): Promise<{
  readonly part: string;
  readonly notes: readonly string[];
  readonly failure?: unknown;
}> {
  const isShown = isShownEngine(engine);
  let failure: unknown;
  if (isShown && engine !== 'html') {
    try {
      const { html: part, notes } = await engineHtml(engine, answer, signal);
      return { part, notes };
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      failure = thrown;
    }
  }
  const { html: part, notes } = await engineHtml('html', answer, signal);
  const others = engine === null || isShown ? [] : [texts.rendered.otherEngine(engine)];
  return { part, failure, notes: [...others, ...notes] };
}

/** The answer of get_render. */
interface RenderInformation extends EngineAnswer {
  readonly engine: string | null;
}
