/*
 * The rendering of the engine `template`, the same in browsers and on the server
 * (docs/design/rendering.md#templates-on-the-server). It imports nothing: the caller passes its
 * build of LiquidJS, and sanitizes the HTML with `sanitizing`.
 */

/** The limits of one template. */
export const limits = {
  parseLimit: 1024 * 1024, // characters of template
  renderLimit: 2_000, // milliseconds
  memoryLimit: 20_000_000, // characters and list items during the rendering
};

/** The options of DOMPurify. */
export const sanitizing = {
  // Removes names and ids that would shadow members of the document (DOM clobbering).
  SANITIZE_DOM: true,
  ADD_ATTR: ['target'],
};

const variableNames = ['query', 'capture', 'user', 'rows', 'origin', 'path', 'lang'];

/**
 * The names of the variables that templates mention. A template gets no others, so that what it
 * makes depends on these alone.
 */
export function variablesOf(templates) {
  const words = new Set(templates.flatMap((text) => text.match(/\w+/g) ?? []));
  return variableNames.filter((name) => words.has(name));
}

/** The templates of an enginedata: the page's, its title and its partials. */
export function templatesOf({ template, title, partials = {} }) {
  return [template, title, ...Object.values(partials)].filter((text) => typeof text === 'string');
}

/** The Liquid texts in the inputs of enginedata.rows. */
export function rowTemplatesOf({ rows = {} }) {
  return textsIn(rows).filter((text) => text.includes('{{'));
}

/**
 * Reads the rows of inputs by their names: `get` calls record.get with one input. A list becomes an
 * array of its rows; one row stays as it is. It is null if the row does not exist, or the visitor
 * may not read the table, such as one with `read = user` if nobody is signed in.
 */
export async function readRows(inputs, get) {
  const all = Object.entries(inputs).map(async ([name, input]) => {
    try {
      const data = await get(input);
      return [name, data.rows ?? data];
    } catch (failure) {
      const isMissing = failure.code === 'not_found' && failure.field !== 'table';
      if (isMissing || failure.code === 'unauthenticated') return [name, null];
      throw failure;
    }
  });
  return Object.fromEntries(await Promise.all(all));
}

/**
 * Renders the template and the title of an enginedata with the variables of `answer`, an answer of
 * get_render; resolves to the HTML, which is not sanitized yet, and the title, if there is one.
 */
export async function renderTemplate(Liquid, answer) {
  const { enginedata } = answer;
  const { template, title, data = {} } = enginedata;
  if (typeof template !== 'string') throw new Error('enginedata has no template.');
  const scope = { ...scopeOf(answer, templatesOf(enginedata)), data };
  const options = optionsOf(answer);
  const html = await new Liquid({ ...options, outputEscape: 'escape' }).parseAndRender(
    template,
    scope,
  );
  if (typeof title !== 'string') return { html };
  return { html, title: await new Liquid(options).parseAndRender(title, scope) };
}

/**
 * The lists of rows that enginedata.rows describes, by their names: the input of record.get for
 * each, in which `{{ … }}` has been replaced.
 */
export async function rowInputs(Liquid, answer) {
  const { rows = {} } = answer.enginedata;
  const scope = scopeOf(answer, rowTemplatesOf(answer.enginedata));
  const liquid = new Liquid(optionsOf(answer));
  const inputs = {};
  for (const [name, input] of Object.entries(rows)) {
    inputs[name] = await replaced(input, (text) => liquid.parseAndRender(text, scope));
  }
  return inputs;
}

/** Replaces the texts with `{{` in a value. */
async function replaced(value, render) {
  if (typeof value === 'string') return value.includes('{{') ? render(value) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return Promise.all(value.map((one) => replaced(one, render)));
  const members = Object.entries(value).map(async ([name, one]) => [
    name,
    await replaced(one, render),
  ]);
  return Object.fromEntries(await Promise.all(members));
}

function textsIn(value) {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

function scopeOf(answer, templates) {
  return Object.fromEntries(variablesOf(templates).map((name) => [name, answer[name]]));
}

function optionsOf({ enginedata, lang }) {
  const { partials = {}, render } = enginedata;
  const isOnServer = render === 'server';
  const zone = enginedata.time_zone ?? (isOnServer ? 'UTC' : undefined);
  return {
    ...limits,
    // Includes come from the rule only.
    templates: Object.assign(Object.create(null), partials),
    ownPropertyOnly: true,
    strictFilters: true,
    ...(zone !== undefined && { timezoneOffset: zone }),
    ...(isOnServer && { locale: lang ?? 'en' }),
  };
}
