import { call, service, type JsonObject } from '../api/api.ts';

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

/**
 * The HTML of a page with an engine. The module of `template` is Waymark's own, with its limits of
 * time and memory; the result runs in the frame of the preview only.
 */
export async function engineHtml(
  engine: ShownEngine,
  answer: JsonObject & { readonly enginedata: JsonObject },
): Promise<string> {
  const { enginedata } = answer;
  const style = typeof enginedata.css === 'string' ? `<style>${enginedata.css}</style>` : '';
  if (engine === 'html')
    return style + (typeof enginedata.html === 'string' ? enginedata.html : '');
  const load = (name: string): Promise<unknown> =>
    import(/* @vite-ignore */ new URL(`engines/${name}`, service).href) as Promise<unknown>;
  const [module, { Liquid }] = (await Promise.all([
    load('template/render.js'),
    load('liquid.js'),
  ])) as [TemplateModule, { Liquid: unknown }];
  const { rowInputs, readRows, renderTemplate, templatesOf, variablesOf } = module;
  const hasRows = variablesOf(templatesOf(enginedata)).includes('rows');
  const rows = hasRows
    ? await readRows(await rowInputs(Liquid, answer), (v) => call('record.get', v))
    : {};
  const { html } = await renderTemplate(Liquid, { ...answer, rows });
  return style + html;
}
