import { useCallback, useEffect, useErrorBoundary, useLayoutEffect, useState } from 'preact/hooks';
import { lazy } from '../components/lazy.tsx';
import { docs, isBound, may, signOut } from '../api/api.ts';
import { useConnection } from '../api/live.ts';
import { helpSignal, tourSignal } from '../help/help-signals.ts';
import { useDraft } from '../api/use-draft.ts';
import { DraftBand, DraftSwitch } from './draft-switch.tsx';
import { Palette } from './palette.tsx';
import { goTo, useRoute, type Route } from '../route.ts';
import type { Session } from '../api/session.ts';
import { Mark } from './sign-in.tsx';
import { Overview } from '../overview/overview.tsx';
import { texts } from '../texts.ts';
import { Disconnected, FailedScreen, NoScope, useCurrentInView } from '../components/ui.tsx';

const Pages = lazy(() => import('../pages/pages.tsx').then(({ Pages: one }) => one));
const PageEditor = lazy(() => import('../pages/editor.tsx').then(({ PageEditor: one }) => one));
const Replace = lazy(() => import('../replace/replace.tsx').then(({ Replace: one }) => one));
const Explain = lazy(() => import('../pages/explain.tsx').then(({ Explain: one }) => one));
const History = lazy(() => import('../history/history.tsx').then(({ History: one }) => one));

const Breadcrumbs = lazy(() =>
  import('../breadcrumbs/breadcrumbs.tsx').then(({ Breadcrumbs: one }) => one),
);
const Breadcrumb = lazy(() =>
  import('../breadcrumbs/breadcrumb.tsx').then(({ Breadcrumb: one }) => one),
);
const Visits = lazy(() => import('../visits/visits.tsx').then(({ Visits: one }) => one));
const Past = lazy(() => import('../history/past.tsx').then(({ Past: one }) => one));
const Help = lazy(() => import('../help/help.tsx').then(({ Help: one }) => one));
const Tour = lazy(() => import('../help/tour.tsx').then(({ Tour: one }) => one));
const Webhooks = lazy(() => import('../webhooks/webhooks.tsx').then(({ Webhooks: one }) => one));
const Drafts = lazy(() => import('../drafts/drafts.tsx').then(({ Drafts: one }) => one));
const Calendar = lazy(() => import('../calendar/calendar.tsx').then(({ Calendar: one }) => one));
const Assets = lazy(() => import('../assets/assets.tsx').then(({ Assets: one }) => one));
const Tables = lazy(() => import('../tables/tables.tsx').then(({ Tables: one }) => one));
const Operations = lazy(() =>
  import('../operations/operations.tsx').then(({ Operations: one }) => one),
);

/** The screens in the navigation, each with the key that opens it after `g`. */
const screens: readonly [ScreenLink, ...ScreenLink[]] = [
  { path: '/', name: texts.nav.overview, key: 'o', scope: 'read', isWhole: true },
  { path: '/pages', name: texts.nav.pages, key: 'p', scope: 'read' },
  { path: '/breadcrumbs', name: texts.nav.breadcrumbs, key: 'b', scope: 'read' },
  { path: '/visits', name: texts.nav.visits, key: 'v', scope: 'read' },
  { path: '/assets', name: texts.nav.assets, key: 'f', scope: 'read', isWhole: true },
  { path: '/tables', name: texts.tables.nav, key: 't', scope: 'admin' },
  { path: '/drafts', name: texts.drafts.title, key: 'd', scope: 'read' },
  { path: '/calendar', name: texts.calendar.title, key: 'c', scope: 'read' },
  { path: '/explain', name: texts.nav.explain, key: 'e', scope: 'read' },
  { path: '/history', name: texts.nav.history, key: 'h', scope: 'read' },
  { path: '/webhooks', name: texts.nav.webhooks, key: 'w', scope: 'webhook' },
  { path: '/operations', name: texts.nav.operations, key: 'x', scope: 'read', isWhole: true },
];

interface ScreenLink {
  readonly path: string;
  readonly name: string;
  readonly key: string;
  /** The scope without which the screen shows nothing. */
  readonly scope: string;
  /** Whether it shows the whole server, which a bound key does not see. */
  readonly isWhole?: boolean;
}

function visibleScreens(): readonly ScreenLink[] {
  return screens.filter(({ scope, isWhole }) => may(scope) && (isWhole !== true || !isBound()));
}

/** The screen of a route; one that cannot be shown says so, and leaves the frame as it is. */
function GuardedScreen({ route }: { route: Route }) {
  const [error, retry] = useErrorBoundary() as [unknown, () => void];
  useEffect(retry, [route]);
  if (error !== undefined) {
    return <FailedScreen title={texts.states.failed} error={error} onRetry={retry} />;
  }
  const [, first = ''] = route.path.split('/');
  const { name, scope, isWhole } = screens.find(({ path }) => path === `/${first}`) ?? screens[0];
  if (isBound() && isWhole === true) {
    return first === '' ? <Pages route={route} /> : <NoScope title={name} />;
  }
  return may(scope) ? <Screen route={route} /> : <NoScope title={name} scope={scope} />;
}

function Screen({ route }: { route: Route }) {
  const [, first = '', id] = route.path.split('/');
  switch (first) {
    case 'pages':
      if (id === 'replace') return <Replace route={route} />;
      return id === undefined ? (
        <Pages route={route} />
      ) : (
        <PageEditor key={id} id={id} route={route} />
      );
    case 'breadcrumbs':
      return id === undefined ? (
        <Breadcrumbs route={route} />
      ) : (
        <Breadcrumb key={id} id={id} route={route} />
      );
    case 'visits':
      return <Visits route={route} />;
    case 'explain':
      return <Explain route={route} />;
    case 'history':
      return id === 'past' ? <Past route={route} /> : <History route={route} />;
    case 'webhooks':
      return <Webhooks route={route} />;
    case 'drafts':
      return <Drafts route={route} />;
    case 'calendar':
      return <Calendar />;
    case 'assets':
      return <Assets route={route} />;
    case 'tables':
      return <Tables route={route} />;
    case 'operations':
      return <Operations route={route} />;
    case '':
      return <Overview route={route} />;
    default:
      return (
        <FailedScreen title={texts.states.noScreen} error={new Error(texts.states.noScreenHint)} />
      );
  }
}

/** Whether the help and the tour are open; they take their requests from any part of the console. */
function useHelp() {
  const [isHelpOpen, setHelpOpen] = useState(false);
  const [isTourOpen, setTourOpen] = useState(false);
  useEffect(() => {
    const ends = [
      helpSignal.listen(() => {
        setHelpOpen((before) => !before);
      }),
      tourSignal.listen(() => {
        setTourOpen(true);
        setHelpOpen(false);
      }),
    ];
    return () => {
      for (const end of ends) end();
    };
  }, []);
  const closeTour = useCallback(() => {
    setTourOpen(false);
  }, []);
  return { isHelpOpen, isTourOpen, closeTour };
}

/** The frame of all screens: navigation, palette, keyboard, theme. */
export function Frame({ session }: { session: Session }) {
  const route = useRoute();
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  useLayoutEffect(
    () =>
      listenToKeys(() => {
        setPaletteOpen(true);
      }),
    [],
  );
  const lostAt = useConnection();
  const draft = useDraft();
  const { isHelpOpen, isTourOpen, closeTour } = useHelp();
  const [, screen = ''] = route.path.split('/');
  const at = `/${screen}`;
  const links = useCurrentInView<HTMLUListElement>(at);
  return (
    <div class={isHelpOpen ? 'frame with-help' : 'frame'}>
      <a class="skip" href="#content" onClick={focusContent}>
        {texts.skip}
      </a>
      <nav aria-label={texts.nav.label}>
        <a class="brand" href="#/">
          <Mark />
          <span class="brand-name">{texts.product}</span>
        </a>
        {may('read') ? <DraftSwitch /> : null}
        <ul ref={links}>
          {visibleScreens().map(({ path, name, key }) => (
            <li key={path}>
              <a href={`#${path}`} aria-current={at === path ? 'page' : undefined}>
                {name}
                <kbd aria-hidden="true">g {key}</kbd>
              </a>
            </li>
          ))}
        </ul>
        <Tools
          session={session}
          onPalette={() => {
            setPaletteOpen(true);
          }}
        />
      </nav>
      <main id="content" tabIndex={-1}>
        <DraftBand screen={screen} />
        <Disconnected since={lostAt} />
        <GuardedScreen key={screen === 'drafts' ? '' : draft?.id} route={route} />
      </main>
      {isHelpOpen ? <Help screen={screen} onClose={helpSignal.send} /> : null}
      {isTourOpen ? <Tour onClose={closeTour} /> : null}
      {isPaletteOpen ? (
        <Palette
          onClose={() => {
            setPaletteOpen(false);
          }}
        />
      ) : null}
    </div>
  );
}

function Tools({ session, onPalette }: { session: Session; onPalette: () => void }) {
  return (
    <div class="nav-tools">
      <button type="button" class="quiet-button" onClick={onPalette}>
        {texts.nav.search} <kbd aria-hidden="true">Ctrl K</kbd>
      </button>
      <button type="button" class="quiet-button" onClick={helpSignal.send}>
        {texts.nav.help} <kbd aria-hidden="true">?</kbd>
      </button>
      <a class="quiet-button" href={docs} target="_blank" rel="noopener noreferrer">
        {texts.nav.docs}
      </a>
      <button type="button" class="quiet-button" onClick={switchTheme}>
        {texts.nav.theme}
      </button>
      <p class="note">
        {texts.nav.signedIn} <b>{session.name}</b>
        {isBound() ? (
          <>
            <br />
            {texts.nav.bound} <code>{boundsLine(session)}</code>
          </>
        ) : null}
      </p>
      <button type="button" class="quiet-button" onClick={() => void signOut()}>
        {texts.nav.signOut}
      </button>
    </div>
  );
}

function boundsLine({ origins = [], paths = [] }: Session): string {
  return [...origins, ...paths].join(' ');
}

function focusContent(event: Event): void {
  event.preventDefault();
  document.getElementById('content')?.focus();
}

function switchTheme(): void {
  const root = document.documentElement;
  const isDark =
    root.dataset.theme === undefined
      ? matchMedia('(prefers-color-scheme: dark)').matches
      : root.dataset.theme === 'dark';
  const theme = isDark ? 'light' : 'dark';
  root.dataset.theme = theme;
  try {
    // public/theme.js reads it.
    localStorage.setItem('waymark console theme', theme);
  } catch {
    // The browser stores nothing: the theme lasts until the tab is closed.
  }
}

/** Ctrl+K opens the palette, `/` the search of a screen, `?` the help, `g` and a letter a screen. */
function listenToKeys(openPalette: () => void): () => void {
  let isAfterG = false;
  const pressed = (event: KeyboardEvent): void => {
    const { key, ctrlKey, metaKey, altKey } = event;
    if ((ctrlKey || metaKey) && key.toLowerCase() === 'k') {
      event.preventDefault();
      openPalette();
      return;
    }
    if (ctrlKey || metaKey || altKey || isTyping(event)) return;
    const screen = isAfterG ? visibleScreens().find((one) => one.key === key) : undefined;
    isAfterG = key === 'g';
    if (screen !== undefined) {
      goTo(screen.path);
      document.getElementById('content')?.focus();
    }
    if (key === '?') helpSignal.send();
    if (key !== '/') return;
    event.preventDefault();
    const search = document.querySelector<HTMLInputElement>('#content input[type=search]');
    if (search === null) openPalette();
    else search.focus();
  };
  addEventListener('keydown', pressed);
  return () => {
    removeEventListener('keydown', pressed);
  };
}

function isTyping({ target }: Event): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return (
    target.isContentEditable ||
    target.shadowRoot !== null ||
    target.matches('input, textarea, select')
  );
}
