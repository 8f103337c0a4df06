/*
 * The engine `template` (docs/design/rendering.md#generic-pages): renders the Liquid of
 * enginedata.template with the data of the page. It escapes the values and sanitizes the result,
 * because anybody can choose the values of the query.
 */

import { clean } from './clean.js';
import { Liquid } from './liquid.js';

const limits = {
  parseLimit: 1024 * 1024, // characters of template
  renderLimit: 2_000, // milliseconds
  memoryLimit: 20_000_000, // characters and list items during the rendering
};

let hasRun = false;

export async function render(answer, page) {
  const { template, data = {}, partials = {}, title, css, scripts = [] } = answer.enginedata;
  if (typeof template !== 'string') throw new Error('enginedata has no template.');
  if (hasRun) {
    // Scripts have run in this document: the changed page needs a new one.
    location.reload();
    return new Promise(() => {});
  }
  const { query, capture, user, origin, path, lang } = answer;
  const scope = { query, capture, user, data, origin, path, lang };
  const options = {
    ...limits,
    // Includes come from the rule only.
    templates: Object.assign(Object.create(null), partials),
    ownPropertyOnly: true,
    strictFilters: true,
  };
  const html = await new Liquid({ ...options, outputEscape: 'escape' }).parseAndRender(
    template,
    scope,
  );
  if (typeof title === 'string') {
    page.setTitle(await new Liquid(options).parseAndRender(title, scope));
  }
  page.setCss(css);
  page.element.replaceChildren(clean(html, page));
  hasRun = scripts.length > 0;
  return page.runScripts(scripts);
}
