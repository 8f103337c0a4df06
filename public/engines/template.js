/*
 * The engine `template` (docs/design/rendering.md#generic-pages): renders the Liquid of
 * enginedata.template with the data of the page. It escapes the values and sanitizes the result,
 * because anybody can choose the values of the query.
 */

import { clean } from './clean.js';
import { parseForTemplate } from './exact-json.js';
import { Liquid } from './liquid.js';
import {
  readRows,
  renderTemplate,
  rowInputs,
  templatesOf,
  variablesOf,
} from './template/render.js';

const answerMsMax = 30_000;

let hasRun = false;
/** The text of the data that the page shows. */
let shown;

export async function render(answer, page) {
  const { css, scripts = [] } = answer.enginedata;
  const rows = page.isRendered ? {} : await rowsOf(answer, page);
  const text = JSON.stringify([answer, rows]);
  if (text === shown) return undefined;
  shown = text;
  if (hasRun) {
    // Scripts have run in this document: the changed page needs a new one.
    location.reload();
    return new Promise(() => {});
  }
  if (!page.isRendered) {
    const { html, title } = await renderTemplate(Liquid, { ...answer, rows });
    if (title !== undefined) page.setTitle(title);
    page.setCss(css);
    page.element.replaceChildren(clean(html, page));
  }
  hasRun = scripts.length > 0;
  return page.runScripts(scripts);
}

/** The rows of enginedata.rows, if the templates mention them. */
async function rowsOf(answer, { base }) {
  if (!variablesOf(templatesOf(answer.enginedata)).includes('rows')) return {};
  return readRows(await rowInputs(Liquid, answer), async (v) => {
    const reply = await fetch(`${base}/svc1/record/get`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ v }),
      signal: AbortSignal.timeout(answerMsMax),
    });
    const { data, error } = parseForTemplate(await reply.text());
    if (error !== undefined) throw Object.assign(new Error(error.message), error);
    return data;
  });
}
