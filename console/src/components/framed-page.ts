import { call, type JsonObject } from '../api/api.ts';
import { engineHtml, isShownEngine } from './engine-html.ts';

/** A page for a frame in which no script may ask the server for data. */
export interface FramedPage {
  readonly html: string;
  /** What the engine of a generic page makes for the element of the page. */
  readonly part?: string;
  /** Whether it shows rows of tables. */
  readonly hasRows?: boolean;
  /** The engine of a generic page that only a visitor's browser can show. */
  readonly engine?: string;
  /** Why the page is without what its engine makes. */
  readonly failure?: unknown;
}

// They take time in proportion to the text, whatever it is.
const emptyScripts = /<script\b([^<>]*)>\s*<\/script\s*>/gi;
const source = /(?:^|[\s"'/])src\s*=/i;
const serverMark = /<[a-z][^<>]*\sdata-waymark-server\b/i;

function withoutLoader(html: string): string {
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
async function madeOf(
  answer: RenderInformation,
  signal: AbortSignal,
): Promise<Omit<FramedPage, 'html'>> {
  const { engine, enginedata } = answer;
  let failure: unknown;
  if (engine === 'template') {
    try {
      const { html: part, hasRows } = await engineHtml(engine, answer, signal);
      return { part, hasRows };
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      failure = thrown;
    }
  }
  const { html: part } = await engineHtml('html', answer, signal);
  const isWhole = isShownEngine(engine) && enginedata.scripts === undefined;
  return { part, failure, ...(engine !== null && !isWhole && { engine }) };
}

/** The answer of get_render. */
interface RenderInformation extends JsonObject {
  readonly engine: string | null;
  readonly enginedata: JsonObject;
}
