import { useEffect, useRef, useState } from 'preact/hooks';
import { currentToken } from '../api/api.ts';
import { fileUrl, type Asset } from './asset-files.ts';

const thumbnailWidth = 320;
/** Without smaller pictures, the whole one is loaded, but no large one. */
const wholeBytesMax = 2 * 1024 * 1024;

/**
 * A small picture of an asset, which is loaded when it comes into view; for other files, the
 * extension of its name. Its address needs the session, so a script loads it.
 */
export function Thumbnail({ asset, hasSizes }: { asset: Asset; hasSizes: boolean }) {
  const { name, sha256, contenttype, bytes } = asset;
  const isPicture = contenttype.startsWith('image/') && (hasSizes || bytes <= wholeBytesMax);
  const place = useRef<HTMLSpanElement>(null);
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    const element = place.current;
    if (element === null || !isPicture) return undefined;
    const abort = new AbortController();
    let made: string | undefined;
    const load = async (): Promise<void> => {
      const blob = await fileBlob(name, abort.signal);
      if (blob === undefined || abort.signal.aborted) return;
      made = URL.createObjectURL(blob);
      setUrl(made);
    };
    const watch = new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting !== true) return;
      watch.disconnect();
      void load();
    });
    watch.observe(element);
    return () => {
      watch.disconnect();
      abort.abort();
      if (made !== undefined) URL.revokeObjectURL(made);
    };
  }, [sha256, name, isPicture]);
  return (
    <span ref={place} class="thumbnail">
      {url === undefined ? (
        <span aria-hidden="true">{isPicture ? '' : name.split('.').at(-1)}</span>
      ) : (
        <img src={url} alt="" />
      )}
    </span>
  );
}

async function fileBlob(name: string, signal: AbortSignal): Promise<Blob | undefined> {
  try {
    const reply = await fetch(fileUrl(name, { width: String(thumbnailWidth) }), {
      headers: { apikey: currentToken() },
      signal,
    });
    return reply.ok ? await reply.blob() : undefined;
  } catch {
    return undefined;
  }
}
