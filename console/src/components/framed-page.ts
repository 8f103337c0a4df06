import { call, type JsonObject } from '../api/api.ts';
import { engineHtml, isShownEngine } from './engine-html.ts';

/** A page for a frame in which no script may ask the server for data. */
export interface FramedPage {
  readonly html: string;
  /** What the engine of a generic page makes for the element of the page. */
  readonly part?: string;
  /** The engine of a generic page that only a visitor's browser can show. */
  readonly engine?: string;
}

const loader =
  /<script\b[^>]*\bsrc\s*=\s*["']?[^"'\s>]*\/svc1\/engine\.js\b[^>]*>\s*<\/script\s*>/gi;

/**
 * The page with what its engine makes of the data of `input`, an input of get_render, in place of
 * the script that would load the data. Rejects with the failure of a template.
 */
export async function framedPage(
  html: string,
  input: JsonObject,
  signal: AbortSignal,
): Promise<FramedPage> {
  const rest = html.replace(loader, '');
  if (rest === html || rest.includes('data-waymark-server')) return { html: rest };
  const answer = await call<RenderInformation>('userinterface.get_render', input, { signal });
  const { engine } = answer;
  if (isShownEngine(engine)) return { html: rest, part: await engineHtml(engine, answer) };
  return engine === null ? { html: rest } : { html: rest, engine };
}

/** The answer of get_render. */
interface RenderInformation extends JsonObject {
  readonly engine: string | null;
  readonly enginedata: JsonObject;
}
