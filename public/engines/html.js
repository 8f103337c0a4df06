/*
 * The engine `html` (docs/design/rendering.md#generic-pages): inserts the css and html of
 * enginedata into the page, then runs its scripts in order, each once.
 */

let hasRun = false;

export async function render({ enginedata: { html, css, scripts = [] } }, page) {
  const isText = typeof html === 'string' && html.trim() !== '';
  if (!isText && scripts.length === 0) throw new Error('enginedata has neither html nor scripts.');
  // Scripts have run in this document: the changed page needs a new one.
  if (hasRun) return reload();
  page.setCss(css);
  if (isText) page.setHtml(html);
  hasRun = scripts.length > 0;
  await page.runScripts(scripts);
}

/** Never resolves, because the browser replaces the document. */
function reload() {
  location.reload();
  return new Promise(() => {});
}
