// Shows the page that the console sends. The policy of this document gives it an opaque origin, and
// only the window around it may send a page.
addEventListener('message', ({ source, data }) => {
  if (source !== parent || typeof data !== 'object' || data === null) return;
  const { html } = data;
  if (typeof html !== 'string') return;
  document.open();
  document.write(html);
  document.close();
});
