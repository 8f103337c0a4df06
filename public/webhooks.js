// Adds to the page about webhooks: its contents, tabs for languages, copy buttons and colours.
// Without scripts, the page has everything but these.

const main = document.querySelector('main');

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function addContents() {
  const items = [...main.querySelectorAll('h2')].map((heading) => {
    heading.id = heading.textContent.toLowerCase().replaceAll(/[^a-z]+/g, '-');
    return element('li', {}, element('a', { href: `#${heading.id}` }, heading.textContent));
  });
  const contents = element('nav', { className: 'contents', ariaLabel: 'Contents' });
  contents.append(element('ol', {}, ...items));
  main.querySelector('header').after(contents);
}

/** Makes tabs of the headings that are each followed by the code of one language. */
function addTabs() {
  const languages = ['node', 'python', 'go', 'php', 'shell'];
  const codes = languages.flatMap((name) => main.querySelector(`pre.${name}`) ?? []);
  const list = element('div', { role: 'tablist', ariaLabel: 'Languages' });
  const panels = codes.map((pre) => {
    const heading = pre.previousElementSibling;
    const id = pre.className;
    const panel = element('div', { id: `code-${id}`, role: 'tabpanel' });
    panel.setAttribute('aria-labelledby', `tab-${id}`);
    if (list.parentElement === null) heading.before(list);
    const tab = element('button', { id: `tab-${id}`, type: 'button', role: 'tab' });
    tab.textContent = heading.textContent;
    tab.setAttribute('aria-controls', panel.id);
    tab.addEventListener('click', () => select(tab));
    list.append(tab);
    heading.replaceWith(panel);
    panel.append(pre);
    return panel;
  });
  const tabs = [...list.children];
  list.addEventListener('keydown', ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (step === undefined) return;
    const at = tabs.indexOf(document.activeElement);
    const next = tabs.at((at + step) % tabs.length);
    next.focus();
    select(next);
  });
  function select(chosen) {
    for (const [at, tab] of tabs.entries()) {
      tab.setAttribute('aria-selected', String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
      panels[at].hidden = tab !== chosen;
    }
  }
  if (tabs.length > 0) select(tabs[0]);
}

function addCopyButton(pre) {
  const text = pre.textContent;
  const button = element('button', { type: 'button', className: 'copy' }, 'Copy');
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
    setTimeout(() => (button.textContent = 'Copy'), 2000);
  });
  const block = element('div', { className: 'block' });
  pre.replaceWith(block);
  block.append(pre, button);
}

const tokens = /(?<string>"[^"\n]*"|'[^'\n]*')|(?<number>\b\d+\b)|(?<word>\b[a-z]+\b)/g;
const hashComment = /(?<![^\s])#[^\n]*/g;
const slashComment = /(?<![^\s])\/\/[^\n]*/g;
const comments = { node: slashComment, go: slashComment, php: slashComment };
Object.assign(comments, { python: hashComment, shell: hashComment });
const keywords = new Set(
  `import from const let await async return if else for of in new throw function def not package
   func var nil type struct range echo exit then fi do done while case esac curl foreach as`.split(
    /\s+/,
  ),
);

/** Puts elements around comments, strings, numbers and keywords. */
function highlight(code, language) {
  const text = code.textContent;
  const parts = [];
  let at = 0;
  for (const { 0: comment, index } of text.matchAll(comments[language] ?? /$^/g)) {
    parts.push(...highlighted(text.slice(at, index)));
    parts.push(element('span', { className: 'tok-comment' }, comment));
    at = index + comment.length;
  }
  code.replaceChildren(...parts, ...highlighted(text.slice(at)));
}

function highlighted(text) {
  const parts = [];
  let at = 0;
  for (const { 0: token, index, groups } of text.matchAll(tokens)) {
    if (groups.word !== undefined && !keywords.has(token)) continue;
    const kind = groups.string ? 'string' : groups.number ? 'number' : 'keyword';
    parts.push(text.slice(at, index), element('span', { className: `tok-${kind}` }, token));
    at = index + token.length;
  }
  return [...parts, text.slice(at)];
}

addContents();
addTabs();
for (const pre of document.querySelectorAll('pre')) {
  highlight(pre.querySelector('code'), pre.className);
  addCopyButton(pre);
}
