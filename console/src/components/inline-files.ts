import { fetchPage, isAlone, service } from '../api/api.ts';
import { boundedResponse } from './bounded-response.ts';

// They take time in proportion to the text, whatever it is.
const tagPattern = /<(?:link|img)\s[^<>]*>/gi;
const urlPatterns = {
  link: /\shref=(?:"([^"]{1,2000})"|'([^']{1,2000})'|([^\s"'>]{1,2000}))/i,
  img: /\ssrc=(?:"([^"]{1,2000})"|'([^']{1,2000})'|([^\s"'>]{1,2000}))/i,
};
const sheetPattern = /\srel=["']?stylesheet\b/i;
const mediaPattern = /\smedia="([^"<>&]{1,200})"/i;
const filesMax = 20;
/** A page can name the same file many times. */
const inlinedCharactersMax = 8 * 1024 * 1024;
const fileMsMax = 3000;
const keptMs = 10_000;

/** Files that were loaded lately, by their address; undefined for one that cannot be. */
const loaded = new Map<string, Promise<Blob | undefined>>();

/** Files that were inserted in this tab, by their paths: only the draft may have them. */
const inserted = new Map<string, Blob>();

/** Keeps a picture that a person has inserted, for previews of pages that show it. */
export function keepInserted(path: string, file: Blob): void {
  const [first] = inserted.keys();
  if (inserted.size >= filesMax && first !== undefined) inserted.delete(first);
  inserted.set(path, file);
}

/**
 * The HTML of a page with its style sheets and images inside it, where the frame may not load them:
 * it loads live files of the console's origin only: an origin of the console alone has none of the
 * site (docs/design/console.md#previews), and what was just inserted may be in a draft. Files of
 * other sites than the page's stay outside.
 */
export async function inlineFiles(html: string, base: string): Promise<string> {
  // In the editor, the origin may be half typed.
  const { origin, protocol } = URL.canParse(base) ? new URL(base) : location;
  const isLoadable = origin === location.origin && !isAlone;
  if (!protocol.startsWith('http') || (isLoadable && inserted.size === 0)) return html;
  const tags = new Map<string, URL>();
  for (const [tag] of html.matchAll(tagPattern)) {
    const url = urlOf(tag, base);
    if (url?.origin !== origin || tags.size >= filesMax) continue;
    if (!isLoadable || inserted.has(url.pathname)) tags.set(tag, url);
  }
  const inlined = new Map<string, string>();
  await Promise.all(
    [...tags].map(async ([tag, url]) => {
      // Each origin has Waymark's own files.
      if (url.pathname.startsWith(service.pathname)) {
        inlined.set(tag, withAddress(tag, service.origin + url.pathname + url.search));
        return;
      }
      const file = inserted.get(url.pathname) ?? (await fileAt(url));
      if (file !== undefined) inlined.set(tag, await withFile(tag, file));
    }),
  );
  let charactersLeft = inlinedCharactersMax;
  return html.replace(tagPattern, (tag) => {
    const found = inlined.get(tag);
    if (found === undefined || found.length > charactersLeft) return tag;
    charactersLeft -= found.length;
    return found;
  });
}

function isLink(tag: string): boolean {
  return /^<link/i.test(tag);
}

function urlOf(tag: string, base: string): URL | undefined {
  if (isLink(tag) && !sheetPattern.test(tag)) return undefined;
  const [, ...found] = urlPatterns[isLink(tag) ? 'link' : 'img'].exec(tag) ?? [];
  const address = found
    .find((one: string | undefined) => one !== undefined)
    ?.replaceAll('&amp;', '&');
  return address !== undefined && URL.canParse(address, base) ? new URL(address, base) : undefined;
}

async function withFile(tag: string, file: Blob): Promise<string> {
  if (isLink(tag)) {
    const css = (await file.text()).replaceAll('</', '<\\/');
    const [, media] = mediaPattern.exec(tag) ?? [];
    return `<style${media === undefined ? '' : ` media="${media}"`}>${css}</style>`;
  }
  return withAddress(tag.replace(/\ssrcset=/gi, ' data-srcset='), await dataUrl(file));
}

function withAddress(tag: string, address: string): string {
  const escaped = address.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
  return isLink(tag)
    ? tag.replace(urlPatterns.link, () => ` href="${escaped}"`)
    : tag.replace(urlPatterns.img, () => ` src="${escaped}"`);
}

async function dataUrl(file: Blob): Promise<string> {
  const reader = new FileReader();
  const { promise, resolve } = Promise.withResolvers<string>();
  reader.onloadend = () => {
    resolve(typeof reader.result === 'string' ? reader.result : '');
  };
  reader.readAsDataURL(file);
  return promise;
}

async function fileAt({ origin, pathname, search }: URL): Promise<Blob | undefined> {
  const key = origin + pathname + search;
  const loading = loaded.get(key) ?? load({ origin, path: pathname + search });
  if (!loaded.has(key)) setTimeout(() => loaded.delete(key), keptMs);
  loaded.set(key, loading);
  return loading;
}

/** The file as a visitor without the session gets it: the author of a page chooses it. */
async function load(place: { origin: string; path: string }): Promise<Blob | undefined> {
  try {
    const signal = AbortSignal.timeout(fileMsMax);
    const response = await fetchPage(place, { signal, isVisitor: true });
    const type = response.headers.get('content-type') ?? '';
    const isFile = response.ok && /^(?:text\/css|image\/[\w.+-]{1,100})(?:;|$)/i.test(type);
    return isFile ? await boundedResponse(response).blob() : undefined;
  } catch {
    return undefined;
  }
}
