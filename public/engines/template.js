/*
 * The engine `template` (docs/design/rendering.md#generic-pages): enginedata.template is Liquid
 * over what the page knows. What it puts out is escaped, and the page that comes of it is cleaned
 * of all that would run as code: values of the query are anybody's.
 */

import { clean } from './clean.js';
import { Liquid } from './liquid.js';

const limits = {
  parseLimit: 1024 * 1024, // characters of template
  renderLimit: 2_000, // milliseconds
  memoryLimit: 20_000_000, // characters and items that are made on the way
};

let hasRun = false;

export async function render(answer, page) {
  const { template, data = {}, partials = {}, title, css, scripts = [] } = answer.enginedata;
  if (typeof template !== 'string') throw new Error('enginedata has no template.');
  if (hasRun) {
    // Scripts of a page that has changed run once in the page as it is now: in a new document.
    location.reload();
    return new Promise(() => {});
  }
  const { query, capture, user, origin, path, lang } = answer;
  const scope = { query, capture, user, data, origin, path, lang };
  const options = {
    ...limits,
    // Includes come from the rule itself, and from nowhere else.
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
