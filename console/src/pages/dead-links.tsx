import { useEffect, useState } from 'preact/hooks';
import { call } from '../api/api.ts';
import { texts } from '../texts.ts';
import { addressOf } from './address.ts';

const t = texts.editor;

/** Links of one page that are looked at; a page with more is checked in part. */
const linksMax = 50;
/** After this time without a further letter, the links are looked at. */
const pauseMs = 600;

// Trusted Types forbid DOMParser here. These take time in proportion to the text, whatever it is.
const tagPattern = /<(?:a|img|link|script)\s[^<>]*>/gi;
const addressPattern = /\s(?:href|src)=(?:"([^"]{1,2000})"|'([^']{1,2000})'|([^\s"'>]{1,2000}))/i;

interface PlacedContent {
  readonly content: string;
  readonly path: string;
  readonly origin: string;
}

/** A link of a page to the same site. */
interface PageLink {
  readonly url: string;
  readonly path: string;
}

/** The links and pictures of an HTML text that lead to the site of its page, each address once. */
function linksIn({ content, path, origin }: PlacedContent): readonly PageLink[] {
  const base = addressOf({ origin, path });
  if (base === undefined || !URL.canParse(base)) return [];
  const found = new Map<string, PageLink>();
  for (const [tag] of content.matchAll(tagPattern)) {
    const [, double, single, bare] = addressPattern.exec(tag) ?? [];
    const text = (double ?? single ?? bare ?? '').trim().replaceAll('&amp;', '&');
    // A template makes its address only when it is shown.
    if (text === '' || text.startsWith('#') || text.includes('{{') || !URL.canParse(text, base))
      continue;
    const url = new URL(text, base);
    if (url.origin !== new URL(base).origin || url.href === base) continue;
    url.hash = '';
    found.set(url.href, { url: url.href, path: decodedPath(url) });
    if (found.size === linksMax) break;
  }
  return [...found.values()];
}

function decodedPath({ pathname }: URL): string {
  try {
    return decodeURI(pathname);
  } catch {
    return pathname;
  }
}

/** Whether nothing of the site answers an address; one that the key may not see is not dead. */
async function isDead({ url }: PageLink, signal: AbortSignal): Promise<boolean> {
  try {
    const { winner } = await call<{ readonly winner: { readonly status: number } | null }>(
      'userinterface.explain',
      { url },
      { signal },
    );
    return winner === null || winner.status === 404 || winner.status === 410;
  } catch {
    return false;
  }
}

/** The links of a text that lead nowhere, shortly after the last change. */
export function DeadLinks(given: PlacedContent) {
  const [dead, setDead] = useState<readonly PageLink[]>([]);
  const links = linksIn(given);
  const key = links.map(({ url }) => url).join(' ');
  useEffect(() => {
    const abort = new AbortController();
    const look = async (): Promise<void> => {
      const found: PageLink[] = [];
      for (const link of links) {
        if (await isDead(link, abort.signal)) found.push(link);
        if (abort.signal.aborted) return;
      }
      setDead(found);
    };
    const timer = setTimeout(() => void look(), pauseMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [key]);
  const shown = dead.filter(({ url }) => links.some((link) => link.url === url));
  return (
    <div role="status">
      {shown.length === 0 ? null : (
        <p class="note">
          {t.deadLinks}{' '}
          {shown.map(({ url, path }, at) => (
            <span key={url}>
              {at === 0 ? '' : ', '}
              <code>{path}</code>
            </span>
          ))}
        </p>
      )}
    </div>
  );
}
