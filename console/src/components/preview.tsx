import { useEffect, useRef } from 'preact/hooks';
import type { JsonObject } from '../api/api.ts';
import { texts } from '../texts.ts';
import { framedPage } from './framed-page.ts';
import { inlineSprites } from './inline-sprites.ts';
import { useLoad } from './loading.ts';
import { Fault } from './ui.tsx';

interface PreviewProps {
  readonly title: string;
  readonly html: string;
  readonly base: string;
}

/** A page of the site in a frame; `input` is that of get_render, for a generic page. */
export function SitePreview({ html, input, ...more }: PreviewProps & { input: JsonObject }) {
  const { data, error } = useLoad(
    (signal) => framedPage(html, input, signal),
    [html, JSON.stringify(input)],
  );
  return (
    <>
      <Fault error={error} />
      {data?.engine === undefined ? null : (
        <p class="note">{texts.rendered.otherEngine(data.engine)}</p>
      )}
      {data === undefined ? null : <Preview {...more} html={data.html} part={data.part} />}
    </>
  );
}

/**
 * HTML in a frame with an opaque origin, to which it goes as a message
 * (docs/design/console.md#hostile-pages-of-the-same-origin); `part` is put into its element for
 * engines.
 */
export function Preview({ title, html, base, part }: PreviewProps & { part?: string | undefined }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const isReady = useRef(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const latest = useRef('');
  latest.current = html;
  const show = async (): Promise<void> => {
    const text = await inlineSprites(html, base);
    const inner = part === undefined ? undefined : await inlineSprites(part, base);
    if (latest.current !== html) return;
    const page = { html: withBase(text, base), part: inner };
    // Its origin is opaque, so the message can name none; the text is no secret of the console.
    frame.current?.contentWindow?.postMessage(page, '*');
  };
  useEffect(() => {
    if (!isReady.current) return undefined;
    clearTimeout(timer.current);
    // A frame that has shown a page no longer listens: it is loaded again.
    timer.current = setTimeout(() => {
      isReady.current = false;
      frame.current?.setAttribute('src', `preview.html?${Date.now()}`);
    }, 400);
    return () => {
      clearTimeout(timer.current);
    };
  }, [html, base, part]);
  return (
    <iframe
      ref={frame}
      class="preview"
      title={title}
      src="preview.html"
      sandbox="allow-scripts"
      onLoad={() => {
        if (isReady.current) return;
        isReady.current = true;
        void show();
      }}
    />
  );
}

function withBase(html: string, base: string): string {
  const address = base.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
  return `<!doctype html><base href="${address}">${html}`;
}
