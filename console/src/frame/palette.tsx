import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { call, docs, firstOrigin, isBound, may, signOut, mayDesign } from '../api/api.ts';
import { helpSignal, tourSignal } from '../help/help-signals.ts';
import { goTo } from '../route.ts';
import { texts } from '../texts.ts';

interface Command {
  readonly name: string;
  /** What distinguishes it from commands of the same name. */
  readonly detail?: string;
  readonly key?: string;
  readonly run: () => void;
}

const to =
  (path: string, params = {}): (() => void) =>
  () => {
    goTo(path, params);
  };

/** The parts of the operations; those that need the scope admin say so themselves. */
const operations = [
  { tab: texts.accessLog.tab, path: 'log' },
  { tab: texts.sources.tab, path: 'sources' },
  { tab: texts.cache.tab, path: 'cache' },
  { tab: texts.nodes.tab, path: 'nodes' },
  { tab: texts.certificates.tab, path: 'certificates' },
  { tab: texts.configuration.tab, path: 'configuration' },
];

interface FoundPage {
  readonly id: string;
  readonly origin: string;
  readonly path: string;
  readonly kind: string;
}

/** How many page rules the palette offers for a path, and how long it waits for more letters. */
const [pagesMax, pauseMs] = [8, 150];

/** The editors of the first page rules whose path begins with what was typed. */
function usePages(typed: string): readonly Command[] {
  const [pages, setPages] = useState<readonly FoundPage[]>([]);
  const path = typed.startsWith('/') && may('read') ? typed : '';
  useEffect(() => {
    if (path === '') return undefined;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const v = { path, sort: 'path', limit: pagesMax };
      call<{ rows: readonly FoundPage[] }>('userinterface.list', v, { signal: abort.signal }).then(
        ({ rows }) => {
          if (!abort.signal.aborted) setPages(rows);
        },
        // The other commands work without them.
        () => undefined,
      );
    }, pauseMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [path]);
  if (path === '') return [];
  // Those of fewer letters, until the server has answered.
  const fitting = pages.filter((one) => one.path.startsWith(path));
  return fitting.map(({ id, origin, path: name, kind }) => ({
    ...{ key: id, name, detail: origin === '*' ? kind : `${kind} · ${origin}` },
    run: to(`/pages/${id}`),
  }));
}

const operationTabs: readonly Command[] = operations.map(({ tab, path }) => ({
  name: tab,
  run: to(`/operations/${path}`),
}));

/** The commands that match what was typed; a path leads to its page rules and explanation. */
function commandsFor(typed: string): readonly Command[] {
  const { palette, nav } = texts;
  const screens: readonly Command[] = [
    ...(isBound() ? [] : [{ name: nav.overview, run: to('/') }]),
    { name: nav.pages, run: to('/pages') },
    { name: nav.breadcrumbs, run: to('/breadcrumbs') },
    { name: texts.drafts.title, run: to('/drafts') },
    { name: texts.calendar.title, run: to('/calendar') },
    { name: nav.explain, run: to('/explain') },
    { name: nav.history, run: to('/history') },
    ...(may('webhook') ? [{ name: nav.webhooks, run: to('/webhooks') }] : []),
    ...(may('admin') ? [{ name: texts.tables.nav, run: to('/tables') }] : []),
    ...(isBound() ? [] : [{ name: nav.operations, run: to('/operations') }, ...operationTabs]),
    ...(mayDesign() ? [{ name: palette.newPage, run: to('/pages/new') }] : []),
    ...(mayDesign() ? [{ name: palette.newBreadcrumb, run: to('/breadcrumbs/new') }] : []),
    { name: nav.help, run: helpSignal.send },
    { name: texts.tour.title, run: tourSignal.send },
    { name: nav.docs, run: () => void window.open(docs, '_blank', 'noopener,noreferrer') },
    { name: nav.signOut, run: () => void signOut() },
  ];
  const isPath = /^(?:\/|https?:)/.test(typed);
  const folder = typed.slice(0, typed.lastIndexOf('/') + 1);
  const paths: readonly Command[] = isPath
    ? [
        { name: palette.explainPath(typed), run: to('/explain', { url: typed }) },
        {
          name: palette.openPath(folder),
          run: to('/pages', { origin: firstOrigin(), path: folder }),
        },
      ]
    : [];
  const sought = typed.toLowerCase();
  return [...paths, ...screens.filter(({ name }) => name.toLowerCase().includes(sought))];
}

/** The command palette: a dialog with a search and a list that the arrow keys move in. */
export function Palette({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState('');
  const [at, setAt] = useState(0);
  const pages = usePages(typed);
  const found = [...commandsFor(typed), ...pages];
  const chosen = Math.min(at, found.length - 1);
  // At once: what a person types next belongs to the palette.
  useLayoutEffect(() => {
    dialog.current?.showModal();
  }, []);
  const run = (command: Command | undefined): void => {
    dialog.current?.close();
    command?.run();
    // The keyboard goes on in the screen, not in the navigation.
    if (command !== undefined) document.getElementById('content')?.focus();
  };
  const moved = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setAt((chosen + step + found.length) % Math.max(1, found.length));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      run(found[chosen]);
    }
  };
  return (
    <dialog ref={dialog} class="palette" aria-label={texts.palette.title} onClose={onClose}>
      <input
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="commands"
        aria-label={texts.palette.placeholder}
        aria-activedescendant={found.length === 0 ? undefined : `command-${chosen}`}
        placeholder={texts.palette.placeholder}
        value={typed}
        onInput={({ currentTarget }) => {
          setTyped(currentTarget.value);
          setAt(0);
        }}
        onKeyDown={moved}
      />
      <ul id="commands" role="listbox" aria-label={texts.palette.title}>
        {found.map((command, index) => (
          <li
            key={command.key ?? command.name}
            id={`command-${index}`}
            role="option"
            aria-selected={index === chosen}
            onClick={() => {
              run(command);
            }}
          >
            {command.name}
            {command.detail === undefined ? null : <span class="quiet"> {command.detail}</span>}
          </li>
        ))}
      </ul>
      {found.length === 0 ? <p class="note">{texts.palette.none}</p> : null}
    </dialog>
  );
}
