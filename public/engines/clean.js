/*
 * HTML that values from elsewhere have gone into, as nodes of which nothing runs: no script, no
 * event handler, no address that is code, no other document in the page's name. The nodes are used
 * as they were parsed: what is written out and parsed again may be something else.
 */

const elements = 'script, base, object, embed, frame, meta[http-equiv], iframe[srcdoc]';
const addresses = new Set(
  'action background cite data formaction href ping poster src srcset xlink:href'.split(' '),
);
/** What a browser skips in front of a scheme and within it (URL standard, basic URL parser). */
const skipped = /[\0-\x20\x7f]+/g;
const code = /^(?:javascript|vbscript|livescript|data(?!:image\/(?:png|gif|jpeg|webp|avif)[;,])):/i;

/** The nodes of a text of HTML, as a fragment of this document. */
export function clean(html, { trusted }) {
  const template = document.createElement('template');
  template.innerHTML = trusted.createHTML(html);
  cleanTree(template.content);
  return document.importNode(template.content, true);
}

function cleanTree(root) {
  for (const element of root.querySelectorAll(elements)) element.remove();
  for (const element of root.querySelectorAll('*')) {
    if (animatesAddress(element)) element.remove();
    else for (const attribute of [...element.attributes]) cleanAttribute(element, attribute);
    if (element instanceof HTMLTemplateElement) cleanTree(element.content);
  }
}

function cleanAttribute(element, { name, value }) {
  const isAddress = addresses.has(name.toLowerCase());
  if (/^on/i.test(name) || (isAddress && code.test(value.replace(skipped, '')))) {
    element.removeAttribute(name);
  }
}

/** An animation of SVG can give a link another address, later. */
function animatesAddress(element) {
  return /(?:^|:)href$/i.test(element.getAttribute('attributeName')?.trim() ?? '');
}
