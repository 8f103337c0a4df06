import { call, fetchPage } from '../api/api.ts';
import { siteOf } from '../pages/address.ts';
import { SitePreview } from './preview.tsx';
import { texts } from '../texts.ts';
import { useLoad } from './loading.ts';
import { Busy, Fault } from './ui.tsx';

const t = texts.rendered;

/** A place of the site, at a moment: a seq or a date-time; now without one. */
interface Place {
  /** An origin, or `*`. */
  readonly origin: string;
  readonly path: string;
  readonly asOf?: string | undefined;
  /** Whether it is the live page, also while the tab works in a draft. */
  readonly isLive?: boolean;
}

interface Page {
  readonly status: number;
  readonly contentType: string;
  /** Undefined if the content is no text. */
  readonly text: string | undefined;
}

async function loadPage(
  { origin: given, path, asOf, isLive = false }: Place,
  signal: AbortSignal,
): Promise<Page | undefined> {
  const origin = siteOf(given);
  const moment = asOf !== undefined && { as_of: asOf };
  const url = origin + encodeURI(path).replaceAll('?', '%3F').replaceAll('#', '%23');
  // Browsers log each response with an error status, so the page is only requested if it exists.
  const { winner } = await call<{ winner: object | null }>(
    'userinterface.explain',
    { url, ...moment },
    { signal, isLive },
  );
  if (winner === null) return undefined;
  const response = await fetchPage({ origin, path, ...moment }, { signal, isLive });
  const contentType = response.headers.get('content-type') ?? '';
  const isText = /^(?:text\/|application\/(?:json|xml|xhtml))/.test(contentType);
  return { status: response.status, contentType, text: isText ? await response.text() : undefined };
}

/** A page as visitors get it, or got it at a moment, in a sandboxed frame. */
export function Rendered({ title, place }: { title: string; place: Place }) {
  const { origin, path, asOf } = place;
  const page = useLoad((signal) => loadPage(place, signal), [origin, path, asOf]);
  return (
    <figure class="rendered">
      <figcaption>
        {title}
        {page.data === undefined || page.data.status === 0 ? null : (
          <span class={page.data.status < 400 ? 'tag good' : 'tag bad'}>{page.data.status}</span>
        )}
      </figcaption>
      <Fault error={page.error} />
      {page.isLoading ? <Busy /> : null}
      {page.data === undefined && page.error === undefined && !page.isLoading ? (
        <p class="empty">{t.nothing}</p>
      ) : null}
      {page.data === undefined ? null : <Content page={page.data} title={title} place={place} />}
    </figure>
  );
}

function Content({ page, title, place }: { page: Page; title: string; place: Place }) {
  const { contentType, status, text } = page;
  if (status === 0) return <p class="note">{t.redirect}</p>;
  if (text === undefined) return <p class="note">{t.noText(contentType)}</p>;
  const base = siteOf(place.origin);
  const html = contentType.includes('html')
    ? text
    : `<pre>${text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</pre>`;
  const { path, asOf } = place;
  const input = { origin: base, path, ...(asOf !== undefined && { as_of: asOf }) };
  return <SitePreview title={title} html={html} base={base + encodeURI(path)} input={input} />;
}
