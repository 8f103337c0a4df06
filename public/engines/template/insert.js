/*
 * Inserts what the engine `template` has rendered on the server into the document of a generic
 * page, as ../../engine.js and ../template.js do in a browser.
 */

/** The languages of engine.js that are written from right to left. */
const rightToLeft =
  /^(ar|arc|ckb|dv|fa|he|nqo|ps|sd|syr|ug|ur|yi)(?!-[a-z]{4}\b)\b|-(adlm|arab|hebr|syrc|thaa)\b/i;

/**
 * Returns the text of the whole page. `content` is an element with what was rendered and sanitized;
 * undefined inserts the HTML of enginedata, and the engine renders the page in the browser.
 */
export function insertRendered(document, answer, rendered) {
  const { enginedata, lang, origin, path } = answer;
  const { content, title } = rendered ?? {};
  const html = content === undefined ? enginedata.html : textOf(content);
  const root = document.documentElement;
  const loader = document.querySelector('script[src*="/svc1/engine.js"]');
  const element =
    document.querySelector('#waymark') ?? document.querySelector('[data-waymark]') ?? document.body;
  if (loader !== null && element.contains(loader)) document.head.append(loader);
  if (typeof lang === 'string') {
    root.lang = lang;
    if (root.dir === '' && rightToLeft.test(lang)) root.dir = 'rtl';
  }
  element.innerHTML = html;
  if (typeof title === 'string') document.title = title;
  else if (isUntitled(document)) {
    const heading = element.querySelector('h1, h2')?.textContent.trim();
    document.title = heading || new URL(origin).host + path;
  }
  if (typeof enginedata.css === 'string') {
    const style = document.createElement('style');
    style.setAttribute('data-waymark-css', '');
    const nonce = loader?.getAttribute('nonce');
    if (nonce) style.setAttribute('nonce', nonce);
    // `<\/` is the same to CSS, and does not end the element.
    style.textContent = enginedata.css.replaceAll('</', '<\\/');
    document.head.append(style);
  }
  if (rendered !== undefined) element.setAttribute('data-waymark-server', '');
  // The sanitizer's own text is inserted into the text of the page: nodes that were serialised
  // once more could have another meaning (mutation XSS).
  const mark = `waymark-${crypto.randomUUID()}`;
  element.textContent = mark;
  return `<!doctype html>\n${root.outerHTML}`.replace(mark, () => html);
}

/** The members of a form that DOMPurify checks. */
const checked = (
  'nodeName textContent removeChild attributes removeAttribute removeAttributeNode ' +
  'getAttributeNode setAttribute namespaceURI insertBefore hasChildNodes nodeType childNodes'
).split(' ');

/**
 * Removes a form with a control that replaces a member of the form, as `<input name="attributes">`
 * does in browsers. DOMPurify removes such forms, and jsdom does not replace the members.
 */
export function removeClobbered(node) {
  if (node.nodeName !== 'FORM') return;
  const controls = [
    ...node.querySelectorAll('button, fieldset, input, object, output, select, textarea, img'),
  ];
  if (controls.some(({ id, name }) => checked.includes(id) || checked.includes(name))) {
    node.remove();
  }
}

/** The HTML in an element. A parser drops the first line end in `pre`, so it is doubled. */
function textOf(content) {
  for (const element of content.querySelectorAll('pre, textarea, listing')) {
    if (element.textContent.startsWith('\n')) element.prepend('\n');
  }
  return content.innerHTML;
}

function isUntitled(document) {
  const title = document.querySelector('title[data-placeholder]');
  return title !== null && title.textContent === title.dataset.placeholder;
}
