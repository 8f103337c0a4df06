import type { JsonObject } from '../../core/values/json/json.ts';
import type { PublicFiles } from '../console/public-files.ts';

/** The functions of public/engines/template/render.js that read an enginedata. */
export interface SharedRendering {
  /** The names of the variables that templates mention. */
  variablesOf(templates: readonly string[]): readonly string[];
  templatesOf(enginedata: JsonObject): readonly string[];
  /** The Liquid texts in the inputs of enginedata.rows. */
  rowTemplatesOf(enginedata: JsonObject): readonly string[];
  /** Reads the rows of inputs by their names. */
  readRows(
    inputs: JsonObject,
    get: (input: JsonObject) => Promise<JsonObject>,
  ): Promise<JsonObject>;
}

/** URLs of the modules that browsers and the thread share. */
export interface RenderingModules {
  /** The URL of public/engines/template/render.js. */
  readonly render: string;
  /** The URL of public/engines/template/insert.js. */
  readonly insert: string;
}

/** The rendering that browsers and the server share. */
export interface Rendering {
  readonly modules: RenderingModules;
  readonly shared: SharedRendering;
}

/**
 * Loads the shared rendering. The modules are `data:` URLs, so that the thread needs no file; they
 * import nothing. Rejects if a file is missing.
 */
export async function loadRendering(files: Pick<PublicFiles, 'file'>): Promise<Rendering> {
  const urlOf = (name: string): string => {
    const file = files.file(`/engines/template/${name}.js`);
    if (file === undefined)
      throw new Error(`The file public/engines/template/${name}.js is missing.`);
    return `data:text/javascript;base64,${file.bytes.toString('base64')}`;
  };
  const modules = { render: urlOf('render'), insert: urlOf('insert') };
  return { modules, shared: (await import(modules.render)) as SharedRendering };
}
