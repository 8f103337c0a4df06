import { useEffect, useRef, useState } from 'preact/hooks';
import type { JsonObject } from '../api/api.ts';
import { framedPage } from './framed-page.ts';
import { inlineFiles } from './inline-files.ts';
import { inlineSprites } from './inline-sprites.ts';
import { useLoad } from './loading.ts';
import { Busy, Fault } from './ui.tsx';

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
      <Fault error={error ?? data?.failure} />
      {data === undefined && error === undefined ? <Busy /> : null}
      <PreviewNotes notes={data?.notes ?? []} />
      {data === undefined ? null : <Preview {...more} html={data.html} part={data.part} />}
    </>
  );
}

/** In what a preview differs from the page that a visitor gets. */
export function PreviewNotes({ notes }: { notes: readonly string[] }) {
  return (
    <>
      {notes.map((note) => (
        <p key={note} class="note">
          {note}
        </p>
      ))}
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
  const [turn, setTurn] = useState(0);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const latest = useRef('');
  const shown = JSON.stringify([html, base, part]);
  latest.current = shown;
  const show = async (): Promise<void> => {
    const inlined = async (one: string): Promise<string> =>
      inlineFiles(await inlineSprites(one, base), base);
    const text = await inlined(html);
    const inner = part === undefined ? undefined : await inlined(part);
    if (latest.current !== shown) return;
    const page = { html: withBase(text, base), part: inner };
    // Its origin is opaque, so the message can name none; the text is no secret of the console.
    frame.current?.contentWindow?.postMessage(page, '*');
  };
  useEffect(() => {
    if (!isReady.current) return undefined;
    clearTimeout(timer.current);
    // A page could keep its frame from loading another one, and read that: each gets a new frame.
    timer.current = setTimeout(() => {
      isReady.current = false;
      setTurn((before) => before + 1);
    }, 400);
    return () => {
      clearTimeout(timer.current);
    };
  }, [html, base, part]);
  return (
    <iframe
      key={turn}
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
