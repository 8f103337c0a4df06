import { boundedResponse } from './bounded-response.ts';

const usePattern = /<use\s[^<>]*?href="([^"#<>\s]+)#[^"<>\s]+"/g;
const spritesMax = 10;
const spriteMsMax = 3000;

/** The sprites that were loaded, by their address; undefined for one that cannot be. */
const loaded = new Map<string, Promise<string | undefined>>();

/**
 * The HTML of a page with the SVG files inside it to which its `<use>` elements refer. Browsers load
 * such files only for a page of their own origin, and the origin of a preview is opaque.
 */
export async function inlineSprites(html: string, base: string): Promise<string> {
  const addresses = new Set<string>();
  for (const [, address = ''] of html.matchAll(usePattern)) addresses.add(address);
  let result = html;
  for (const [at, address] of [...addresses].slice(0, spritesMax).entries()) {
    const sprite = await spriteAt(address, base);
    if (sprite === undefined) continue;
    const prefix = `sprite-${at}-`;
    result = result.replaceAll(`href="${address}#`, `href="#${prefix}`) + hidden(sprite, prefix);
  }
  return result;
}

async function spriteAt(address: string, base: string): Promise<string | undefined> {
  if (!URL.canParse(address, base)) return undefined;
  const url = new URL(address, base);
  // The console may request only its own origin.
  if (url.origin !== location.origin) return undefined;
  const loading = loaded.get(url.href) ?? load(url.href);
  loaded.set(url.href, loading);
  return loading;
}

async function load(url: string): Promise<string | undefined> {
  try {
    const response = await fetch(url, {
      credentials: 'omit',
      signal: AbortSignal.timeout(spriteMsMax),
    });
    const text = response.ok ? await boundedResponse(response).text() : '';
    const start = text.indexOf('<svg');
    return start >= 0 ? text.slice(start) : undefined;
  } catch {
    return undefined;
  }
}

/** A sprite that takes no room, whose ids differ from those of the page. */
function hidden(sprite: string, prefix: string): string {
  const renamed = sprite
    .replace(/\sid="([^"<>]+)"/g, ` id="${prefix}$1"`)
    .replace(/href="#([^"<>]+)"/g, `href="#${prefix}$1"`)
    .replace(/url\(#([^()]+)\)/g, `url(#${prefix}$1)`);
  return renamed.replace('<svg', '<svg width="0" height="0" aria-hidden="true"');
}
