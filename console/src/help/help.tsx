import { useEffect, useRef, useState } from 'preact/hooks';
import { docs } from '../api/api.ts';
import { loadDocumentation } from '../api/documentation.ts';
import { tourSignal } from './help-signals.ts';
import { texts } from '../texts.ts';
import { useLoad } from '../components/loading.ts';
import { Busy, Fault } from '../components/ui.tsx';
import './help.css';

const t = texts.help;

/** The page of the documentation about each screen, by the first part of its path. */
const pages: Readonly<Record<string, string>> = {
  '': 'how-to/monitoring.html',
  pages: 'reference/page-rules.html',
  breadcrumbs: 'how-to/breadcrumbs.html',
  drafts: 'how-to/drafts.html',
  calendar: 'how-to/schedules.html',
  explain: 'how-to/troubleshoot.html',
  history: 'how-to/undo.html',
  webhooks: 'how-to/webhooks.html',
  operations: 'how-to/keys-and-scopes.html',
  records: 'how-to/records.html',
  tables: 'how-to/records.html',
  nodes: 'how-to/several-machines.html',
};

/** The documentation beside the screen: first the page about it, then where links lead. */
export function Help({ screen, onClose }: { screen: string; onClose: () => void }) {
  const own = Object.hasOwn(pages, screen) ? pages[screen] : undefined;
  const [path, setPath] = useState(own ?? 'how-to/console.html');
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    setPath(own ?? 'how-to/console.html');
  }, [own]);
  useEffect(() => {
    panel.current?.focus();
  }, []);
  const page = useLoad(() => loadDocumentation(path), [path]);
  useEffect(() => {
    panel.current?.scrollTo(0, 0);
  }, [page.data]);
  return (
    <aside
      ref={panel}
      class="help"
      aria-label={t.title}
      tabIndex={-1}
      onKeyDown={({ key }) => {
        if (key === 'Escape') onClose();
      }}
    >
      <div class="panel-head">
        <button type="button" class="quiet-button" onClick={tourSignal.send}>
          {t.tour}
        </button>
        <a
          class="quiet-button"
          href={new URL(path, docs).href}
          target="_blank"
          rel="noopener noreferrer"
        >
          {t.open}
        </a>
        <button type="button" class="quiet-button" onClick={onClose}>
          {t.close}
        </button>
      </div>
      <Fault error={page.error} />
      {page.error === undefined ? null : <p class="note">{t.missing}</p>}
      {page.isLoading ? <Busy /> : null}
      <div
        class="help-text"
        onClick={(event) => {
          const link = (event.target as Element).closest('a[data-doc]');
          const next = link?.getAttribute('data-doc');
          if (next === null || next === undefined || event.ctrlKey || event.metaKey) return;
          event.preventDefault();
          setPath(next);
        }}
      >
        {page.data?.content}
      </div>
    </aside>
  );
}
