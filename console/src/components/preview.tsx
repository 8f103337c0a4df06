import { useEffect, useRef } from 'preact/hooks';
import { inlineSprites } from './inline-sprites.ts';

/**
 * A page in a frame with an opaque origin, to which its text goes as a message
 * (docs/design/console.md#hostile-pages-of-the-same-origin).
 */
export function Preview({ title, html, base }: { title: string; html: string; base: string }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const isReady = useRef(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const latest = useRef('');
  latest.current = html;
  const show = async (): Promise<void> => {
    const text = await inlineSprites(html, base);
    if (latest.current !== html) return;
    // Its origin is opaque, so the message can name none; the text is no secret of the console.
    frame.current?.contentWindow?.postMessage({ html: withBase(text, base) }, '*');
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
  }, [html, base]);
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
