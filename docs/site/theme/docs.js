const { documentElement: html, body } = document;
const byId = (id) => document.getElementById(id);

// ---- Theme
const themeButton = byId('theme-button');
themeButton.hidden = false;
function showTheme() {
  themeButton.textContent = html.dataset.theme === 'dark' ? 'Light' : 'Dark';
}
themeButton.addEventListener('click', () => {
  html.dataset.theme = html.dataset.theme === 'dark' ? 'light' : 'dark';
  localStorage.setItem('waymark-docs-theme', html.dataset.theme);
  showTheme();
});
showTheme();

// ---- Navigation: closed on narrow screens until it is opened
const pages = byId('pages');
const narrow = matchMedia('(max-width: 60rem)');
const showPages = () => (pages.open = !narrow.matches);
narrow.addEventListener('change', showPages);
showPages();
pages.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });

// ---- Copy buttons
for (const pre of document.querySelectorAll('pre')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copy';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(pre.textContent);
    button.textContent = 'Copied';
    setTimeout(() => (button.textContent = 'Copy'), 2000);
  });
  const frame = document.createElement('div');
  frame.className = 'code';
  pre.replaceWith(frame);
  frame.append(pre, button);
}

// ---- Search: the index is fetched when somebody first opens it
const [dialog, query, results] = [byId('search'), byId('query'), byId('results')];
let index;
async function loadIndex() {
  const [{ default: MiniSearch }, reply] = await Promise.all([
    import('./minisearch.js'),
    fetch(body.dataset.search),
  ]);
  const entries = await reply.json();
  index = new MiniSearch({
    idField: 'href',
    fields: ['heading', 'title', 'text'],
    storeFields: ['title', 'heading', 'text'],
    // Names such as `connect_timeout` and `record.changed` are also found by their parts.
    tokenize: (text) =>
      text
        .toLowerCase()
        .match(/[\p{L}\p{N}_]+(?:\.[\p{L}\p{N}_]+)*/gu)
        ?.flatMap(parts) ?? [],
    searchOptions: {
      boost: { heading: 4, title: 2 },
      prefix: true,
      fuzzy: (term) => (term.length > 4 ? 0.2 : false),
      combineWith: 'AND',
      tokenize: (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+(?:\.[\p{L}\p{N}_]+)*/gu) ?? [],
    },
  });
  index.addAll(entries);
}
function parts(word) {
  const inner = word.split(/[_.]/).filter(Boolean);
  return inner.length > 1 ? [word, ...inner] : [word];
}
async function openSearch() {
  dialog.showModal();
  query.select();
  if (index === undefined) await loadIndex();
  showResults();
}
function showResults() {
  const found = index.search(query.value).slice(0, 20);
  results.replaceChildren(...found.map(resultItem));
  if (found.length === 0 && query.value !== '') {
    const none = document.createElement('li');
    none.textContent = `Nothing contains “${query.value}”.`;
    results.append(none);
  }
}
function resultItem({ id, title, heading, text, terms }) {
  const item = document.createElement('li');
  const link = document.createElement('a');
  link.href = body.dataset.root + id;
  link.textContent = heading === title ? title : `${title}: ${heading}`;
  link.addEventListener('click', () => dialog.close());
  const at = Math.max(0, text.toLowerCase().indexOf(terms[0] ?? '') - 40);
  const excerpt = document.createElement('p');
  excerpt.textContent = text.slice(at, at + 140);
  item.append(link, excerpt);
  return item;
}
query.addEventListener('input', () => {
  if (index !== undefined) showResults();
});
query.addEventListener('keydown', (event) => {
  const first = results.querySelector('a');
  if (event.key !== 'Enter' || first === null) return;
  event.preventDefault();
  first.click();
});
byId('search-button').hidden = false;
byId('search-button').addEventListener('click', () => void openSearch());
document.addEventListener('keydown', (event) => {
  const typing = event.target.closest('input, textarea');
  const asked = event.key === '/' || (event.key === 'k' && (event.ctrlKey || event.metaKey));
  if (!asked || typing || dialog.open) return;
  event.preventDefault();
  void openSearch();
});
