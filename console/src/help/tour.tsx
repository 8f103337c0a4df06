import { useEffect, useRef, useState } from 'preact/hooks';
import { isBound, may } from '../api/api.ts';
import { goTo } from '../route.ts';
import { texts } from '../texts.ts';
import './help.css';

const t = texts.tour;

interface Step {
  readonly title: string;
  readonly text: string;
  readonly path: string;
  readonly params?: Readonly<Record<string, string>>;
  /** The element that the step is about. */
  readonly target: string;
  readonly scope?: string;
}

const steps: readonly Step[] = [
  { ...t.overview, path: '/', target: '.tiles' },
  { ...t.pages, path: '/pages', target: '.virtual' },
  { ...t.explain, path: '/explain', params: { url: '/' }, target: '.precedence' },
  { ...t.history, path: '/history', target: '.changes' },
  { ...t.webhooks, path: '/webhooks', target: '#content h1', scope: 'webhook' },
  { ...t.keys, path: '/', target: '.nav-tools' },
];

/** The tour: a small window that leads through the screens, which stay usable. */
export function Tour({ onClose }: { onClose: () => void }) {
  const all = steps.filter(
    ({ scope, path }) => (scope === undefined || may(scope)) && (path !== '/' || !isBound()),
  );
  const [at, setAt] = useState(0);
  const box = useRef<HTMLElement>(null);
  const step = all[at];
  const isLast = at === all.length - 1;
  useEffect(() => {
    if (step === undefined) return undefined;
    goTo(step.path, step.params);
    box.current?.focus();
    return markTarget(step.target);
  }, [at]);
  if (step === undefined) return null;
  const go = (by: number): void => {
    if (at + by >= all.length) onClose();
    else setAt(Math.max(0, at + by));
  };
  return (
    <section
      ref={box}
      class="tour"
      role="dialog"
      aria-label={t.title}
      tabIndex={-1}
      onKeyDown={(event) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (event.key === 'Escape') onClose();
        else if (by !== undefined) go(by);
      }}
    >
      <h2>{step.title}</h2>
      <p>{step.text}</p>
      <p class="actions">
        <span class="note">{t.step(at + 1, all.length)}</span>
        <button type="button" class="quiet-button" onClick={onClose}>
          {t.end}
        </button>
        {at === 0 ? null : (
          <button
            type="button"
            class="quiet-button"
            onClick={() => {
              go(-1);
            }}
          >
            {t.back}
          </button>
        )}
        <button
          type="button"
          class="main-button"
          onClick={() => {
            go(1);
          }}
        >
          {isLast ? t.done : t.next}
        </button>
      </p>
    </section>
  );
}

/** Marks an element as soon as its screen has it; returns the function that ends this. */
function markTarget(selector: string): () => void {
  let marked: Element | undefined;
  const mark = (): void => {
    const found = document.querySelector(selector) ?? undefined;
    if (found === marked) return;
    marked?.classList.remove('tour-target');
    found?.classList.add('tour-target');
    marked = found;
  };
  const observer = new MutationObserver(mark);
  observer.observe(document.body, { childList: true, subtree: true });
  mark();
  return () => {
    observer.disconnect();
    marked?.classList.remove('tour-target');
  };
}
