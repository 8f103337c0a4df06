// Brings the supplier's stock table into the page; to the browser it is a page of this very site.
(async () => {
  const place = document.querySelector('#storeroom');
  try {
    const reply = await fetch('/supplier/today.html');
    if (!reply.ok) throw new Error(`the answer was ${reply.status}`);
    const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
    const table = page.querySelector('table');
    table.className = 'sheet';
    place.replaceChildren(table);
  } catch (error) {
    place.textContent = `The storeroom does not answer just now (${error.message}).`;
  } finally {
    place.removeAttribute('aria-busy');
  }
})();
