// Shows the page that the console sends. The policy of this document gives it an opaque origin, and
// only the window around it may send a page.
addEventListener('message', ({ source, data }) => {
  if (source !== parent || typeof data !== 'object' || data === null) return;
  const { html, part } = data;
  if (typeof html !== 'string') return;
  document.open();
  if (typeof part === 'string') {
    document.addEventListener('DOMContentLoaded', () => {
      // As /svc1/engine.js chooses the element of a page.
      const element =
        document.querySelector('#waymark') ??
        document.querySelector('[data-waymark]') ??
        document.body;
      element.replaceChildren(withoutScripts(part));
    });
  }
  document.write(html);
  document.close();
});

/** The nodes of what an engine has made, without the scripts that it removes, too. */
function withoutScripts(html) {
  const template = document.createElement('template');
  template.innerHTML = html;
  for (const script of template.content.querySelectorAll('script')) script.remove();
  // The fields of a form hide its properties of the same name.
  for (const element of template.content.querySelectorAll('*')) {
    for (const name of Element.prototype.getAttributeNames.call(element)) {
      if (name.startsWith('on')) Element.prototype.removeAttribute.call(element, name);
    }
  }
  return template.content;
}
