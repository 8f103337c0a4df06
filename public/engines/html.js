/*
 * The engine `html` (docs/design/rendering.md#generic-pages): enginedata's css and html go into the
 * page, then its scripts run, in order and once each.
 */

let hasRun = false;

export async function render({ enginedata: { html, css, scripts = [] } }, page) {
  const isText = typeof html === 'string' && html.trim() !== '';
  if (!isText && scripts.length === 0) throw new Error('enginedata has neither html nor scripts.');
  // Scripts of a page that has changed run once in the page as it is now: in a new document.
  if (hasRun) return reload();
  page.setCss(css);
  if (isText) page.setHtml(html);
  hasRun = scripts.length > 0;
  await page.runScripts(scripts);
}

/** Never resolves: the document goes. */
function reload() {
  location.reload();
  return new Promise(() => {});
}
