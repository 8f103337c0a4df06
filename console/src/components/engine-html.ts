import { callAsVisitor, service, type JsonObject } from '../api/api.ts';

/** An engine whose pages the console can show. */
export type ShownEngine = 'html' | 'template';

export function isShownEngine(engine: unknown): engine is ShownEngine {
  return engine === 'html' || engine === 'template';
}

/** The functions of public/engines/template/render.js. */
interface TemplateModule {
  readonly rowInputs: (Liquid: unknown, answer: object) => Promise<object>;
  readonly readRows: (inputs: object, get: (v: object) => Promise<unknown>) => Promise<object>;
  readonly renderTemplate: (Liquid: unknown, answer: object) => Promise<{ html: string }>;
  readonly templatesOf: (enginedata: JsonObject) => readonly string[];
  readonly variablesOf: (templates: readonly string[]) => readonly string[];
}

/** What an engine makes of the data of a page. */
export interface EngineHtml {
  readonly html: string;
  /** Whether it shows rows of tables: those that every visitor may read now. */
  readonly hasRows: boolean;
}

/**
 * The HTML of a page with an engine. The module of `template` is Waymark's own, with its limits of
 * time and memory; the result runs in the frame of the preview only. Its rows are read without the
 * session: the author of a page could send what the session reads to another server.
 */
export async function engineHtml(
  engine: ShownEngine,
  answer: JsonObject & { readonly enginedata: JsonObject },
  signal: AbortSignal,
): Promise<EngineHtml> {
  const { enginedata } = answer;
  const css = typeof enginedata.css === 'string' ? enginedata.css.replaceAll('</', '<\\/') : '';
  const style = css === '' ? '' : `<style>${css}</style>`;
  if (engine === 'html') {
    const html = typeof enginedata.html === 'string' ? enginedata.html : '';
    return { html: style + html, hasRows: false };
  }
  const load = (name: string): Promise<unknown> =>
    import(/* @vite-ignore */ new URL(`engines/${name}`, service).href) as Promise<unknown>;
  const [module, { Liquid }] = (await Promise.all([
    load('template/render.js'),
    load('liquid.js'),
  ])) as [TemplateModule, { Liquid: unknown }];
  const { rowInputs, readRows, renderTemplate, templatesOf, variablesOf } = module;
  const hasRows = variablesOf(templatesOf(enginedata)).includes('rows');
  const rows = hasRows
    ? await readRows(await rowInputs(Liquid, answer), (v) =>
        callAsVisitor('record.get', v, { signal }),
      )
    : {};
  const { html } = await renderTemplate(Liquid, { ...answer, rows });
  return { html: style + html, hasRows };
}
