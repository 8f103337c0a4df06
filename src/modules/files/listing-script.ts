import { createHash } from 'node:crypto';

/**
 * The script of listings: sorts the rows by a column and filters them by name. It reads names as
 * text only. Without scripts, a listing has everything else.
 */
export const listingScript = `
'use strict';
const table = document.querySelector('table');
const body = table && table.tBodies[0];
const rows = body ? [...body.rows] : [];
const named = rows.filter((row) => row.querySelector('bdi'));
const nameOf = (row) => row.querySelector('bdi').textContent;
const timeOf = (row) => row.querySelector('time').dateTime;
const names = new Intl.Collator('en', { numeric: true });
const orders = [
  (one, other) => names.compare(nameOf(one), nameOf(other)),
  (one, other) => one.cells[0].dataset.bytes - other.cells[0].dataset.bytes,
  (one, other) => names.compare(timeOf(one), timeOf(other)),
];
const heads = table ? [...table.tHead.rows[0].cells] : [];
heads.forEach((head, at) => {
  const button = document.createElement('button');
  button.type = 'button';
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener('click', () => {
    const descending = head.getAttribute('aria-sort') === 'ascending';
    for (const other of heads) other.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
    const sorted = [...named].sort(orders[at]);
    if (descending) sorted.reverse();
    const isFolder = (row) => row.className === 'folder';
    if (at === 0) sorted.sort((one, other) => isFolder(other) - isFolder(one));
    body.append(...sorted);
  });
});
if (named.length > 8) {
  const label = document.createElement('label');
  const field = document.createElement('input');
  field.type = 'search';
  label.append('Filter by name ', field);
  const status = document.createElement('p');
  status.className = 'note';
  status.setAttribute('role', 'status');
  document.querySelector('.sheet').before(label);
  document.querySelector('.sheet').after(status);
  field.addEventListener('input', () => {
    const wanted = field.value.toLowerCase();
    let shown = 0;
    for (const row of named) {
      row.hidden = !nameOf(row).toLowerCase().includes(wanted);
      if (!row.hidden) shown += 1;
    }
    status.textContent = wanted === '' ? '' : shown + ' of ' + named.length + ' entries';
  });
}
`;

/** The hash of the script for a Content-Security-Policy. */
export const listingScriptHash = createHash('sha256').update(listingScript).digest('base64');
