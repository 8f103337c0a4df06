import { ApiError, call, callAsVisitor, service, type JsonObject } from '../api/api.ts';
import { texts } from '../texts.ts';

const t = texts.rendered;

/** The engines whose pages the console can show: Waymark's own. */
const shownEngines = ['html', 'template', 'form'] as const;
export type ShownEngine = (typeof shownEngines)[number];

export function isShownEngine(engine: unknown): engine is ShownEngine {
  return shownEngines.some((one) => one === engine);
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
  /** In what it differs from the page that a visitor gets. */
  readonly notes: readonly string[];
}

/** The data of a page, as get_render answers it. */
export type EngineAnswer = JsonObject & { readonly enginedata: JsonObject };

/**
 * The HTML of a page with an engine. The modules are Waymark's own, with their limits of time and
 * memory; the result runs in the frame of the preview only. Rows are read without the session: the
 * author of a page could send what the session reads to another server.
 */
export async function engineHtml(
  engine: ShownEngine,
  answer: EngineAnswer,
  signal: AbortSignal,
): Promise<EngineHtml> {
  const { enginedata } = answer;
  const css = typeof enginedata.css === 'string' ? enginedata.css.replaceAll('</', '<\\/') : '';
  const style = css === '' ? '' : `<style>${css}</style>`;
  const { html, notes } = await engines[engine](answer, signal);
  const scripts = engine === 'form' || enginedata.scripts === undefined ? [] : [t.scripts];
  return { html: style + html, notes: [...notes, ...scripts] };
}

type Engine = (answer: EngineAnswer, signal: AbortSignal) => Promise<EngineHtml>;

const engines: Readonly<Record<ShownEngine, Engine>> = {
  html: ({ enginedata: { html } }) =>
    Promise.resolve({ html: typeof html === 'string' ? html : '', notes: [] }),
  template: templateHtml,
  form: formHtml,
};

/** A module or style sheet of the engines. */
function engineFile(name: string): string {
  return new URL(`engines/${name}`, service).href;
}

const load = <T>(name: string): Promise<T> =>
  import(/* @vite-ignore */ engineFile(name)) as Promise<T>;

async function templateHtml(answer: EngineAnswer, signal: AbortSignal): Promise<EngineHtml> {
  const [module, { Liquid }] = await Promise.all([
    load<TemplateModule>('template/render.js'),
    load<{ Liquid: unknown }>('liquid.js'),
  ]);
  const { rowInputs, readRows, renderTemplate, templatesOf, variablesOf } = module;
  const hasRows = variablesOf(templatesOf(answer.enginedata)).includes('rows');
  const rows = hasRows
    ? await readRows(await rowInputs(Liquid, answer), (v) =>
        callAsVisitor('record.get', v, { signal }),
      )
    : {};
  const { html } = await renderTemplate(Liquid, { ...answer, rows });
  return { html, notes: hasRows ? [t.rows] : [] };
}

/** An answer of record.schema, as far as it matters here. */
interface Described {
  readonly schema?: unknown;
  readonly may?: Readonly<Record<string, string>>;
}

/** The form as it begins. It sends nothing: the frame runs none of its scripts. */
async function formHtml(answer: EngineAnswer, signal: AbortSignal): Promise<EngineHtml> {
  const { table, meta, kind, enginedata } = answer;
  const isElsewhere = enginedata.submit !== undefined;
  if (isElsewhere && !meta) return { html: '', notes: [t.formElsewhere] };
  if (!isElsewhere && (typeof table !== 'string' || table === '')) {
    return { html: '', notes: [t.formTable] };
  }
  const [module, described] = await Promise.all([
    load<{ preview: (answer: object, described: object) => string }>('form.js'),
    isElsewhere ? { schema: meta } : describedTable(table as string, signal),
  ]);
  const { may = {} }: Described = described;
  const isClosed = may[kind === 'insert-record' ? 'insert' : 'edit'] === 'none';
  const style = `<link rel="stylesheet" href="${engineFile('form.css')}">`;
  return {
    html: style + module.preview(answer, described),
    notes: [
      ...[kind === 'insert-record' ? t.form : t.formOfRow],
      ...(isClosed ? [t.formClosed] : []),
    ],
  };
}

/**
 * What record.schema says to every visitor; where it refuses them, what it says to the session,
 * without the rows that references can name.
 */
async function describedTable(table: string, signal: AbortSignal): Promise<Described> {
  try {
    return await callAsVisitor<Described>('record.schema', { table }, { signal });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const seen = await call<Described>('record.schema', { table }, { signal });
    return { ...seen, references: {}, may: { insert: 'none', edit: 'none' } } as Described;
  }
}
