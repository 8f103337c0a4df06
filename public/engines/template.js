/*
 * The engine `template` (docs/design/rendering.md#generic-pages): renders the Liquid of
 * enginedata.template with the data of the page. It escapes the values and sanitizes the result,
 * because anybody can choose the values of the query.
 */

import { clean } from './clean.js';
import { Liquid } from './liquid.js';
import { renderTemplate } from './template/render.js';

let hasRun = false;

export async function render(answer, page) {
  const { css, scripts = [] } = answer.enginedata;
  if (hasRun) {
    // Scripts have run in this document: the changed page needs a new one.
    location.reload();
    return new Promise(() => {});
  }
  if (!page.isRendered) {
    const { html, title } = await renderTemplate(Liquid, answer);
    if (title !== undefined) page.setTitle(title);
    page.setCss(css);
    page.element.replaceChildren(clean(html, page));
  }
  hasRun = scripts.length > 0;
  return page.runScripts(scripts);
}
