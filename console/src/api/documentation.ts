import { h, type ComponentChild } from 'preact';
import { docs } from './api.ts';

/** The elements of a page of the documentation that the console shows, and as what. */
const shownAs: Readonly<Record<string, string>> = {
  // The heading of the screen is the only h1.
  ...{ h1: 'h2', h2: 'h3', h3: 'h4', h4: 'h4', p: 'p', ul: 'ul', ol: 'ol', li: 'li' },
  ...{ pre: 'pre', code: 'code', em: 'em', strong: 'strong', kbd: 'kbd', dl: 'dl', dt: 'dt' },
  ...{ dd: 'dd', table: 'table', thead: 'thead', tbody: 'tbody', tr: 'tr', th: 'th', td: 'td' },
};

/** A page of the documentation as elements of the console. */
export interface DocumentationPage {
  readonly title: string;
  readonly content: readonly ComponentChild[];
}

/**
 * Loads a page of the documentation, by its path, such as `how-to/undo.html`. Only elements in a
 * list are shown, without their attributes, so nothing of it runs. Rejects if there is no such page.
 */
export async function loadDocumentation(path: string): Promise<DocumentationPage> {
  const url = new URL(path, docs);
  const parsed = await parsedDocument(url);
  const article = parsed.querySelector('article');
  if (article === null) throw new Error(`${url.pathname} is no page of the documentation.`);
  return {
    title: article.querySelector('h1')?.textContent ?? '',
    content: [...article.childNodes].map((node) => shown(node, url)),
  };
}

/** An XMLHttpRequest parses HTML without running it; Trusted Types forbid DOMParser. */
function parsedDocument(url: URL): Promise<Document> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('GET', url);
    request.responseType = 'document';
    request.addEventListener('load', () => {
      const { status, responseXML } = request;
      if (status === 200 && responseXML !== null) resolve(responseXML);
      else reject(new Error(`${url.pathname} cannot be read: status ${status}.`));
    });
    request.addEventListener('error', () => {
      reject(new Error(`${url.pathname} cannot be read: the server does not answer.`));
    });
    request.send();
  });
}

function shown(node: Node, url: URL): ComponentChild {
  if (node.nodeType === Node.TEXT_NODE) return node.textContent;
  if (!(node instanceof Element)) return null;
  const name = node.localName;
  if (name === 'script' || name === 'style' || name === 'button') return null;
  const children = [...node.childNodes].map((child) => shown(child, url));
  if (name === 'a') return link(node, url, children);
  const as = shownAs[name];
  if (as === undefined) return h('span', null, children);
  // What may be wider than the panel scrolls, also by keyboard.
  return h(as, as === 'pre' || as === 'table' ? { tabIndex: 0 } : null, children);
}

function link(node: Element, url: URL, children: readonly ComponentChild[]): ComponentChild {
  const target = URL.parse(node.getAttribute('href') ?? '', url);
  const path = target && documentationPath(target);
  if (path !== null && path !== undefined)
    return h('a', { href: target?.href, 'data-doc': path }, children);
  const isWeb = target !== null && /^https?:$/.test(target.protocol);
  if (!isWeb) return h('span', null, children);
  return h('a', { href: target.href, target: '_blank', rel: 'noopener noreferrer' }, children);
}

/** The path of a page below the documentation; undefined for another URL. */
function documentationPath({ origin, pathname, href }: URL): string | undefined {
  const root = new URL(docs);
  const isPage = origin === root.origin && pathname.startsWith(root.pathname);
  return isPage && pathname.endsWith('.html')
    ? href.slice(docs.length).replace(/#.*$/s, '')
    : undefined;
}
