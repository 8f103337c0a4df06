// Draws the lamps of a page that a template has made: templates themselves bring no pictures of
// other files.
for (const place of document.querySelectorAll('[data-lamp]')) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const use = document.createElementNS('http://www.w3.org/2000/svg', 'use');
  svg.setAttribute('viewBox', '0 0 200 420');
  svg.setAttribute('class', 'lamp');
  svg.setAttribute('aria-hidden', 'true');
  use.setAttribute('href', `/assets/lamps.svg#${place.dataset.lamp}`);
  svg.append(use);
  place.append(svg);
}
