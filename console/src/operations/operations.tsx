import { useState } from 'preact/hooks';
import { ApiError, call, may } from '../api/api.ts';
import { useLive } from '../api/live.ts';
import { linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { useLoad } from '../components/loading.ts';
import { CopyCurl, Fault, NoScope, ScreenHead, useCurrentInView, When } from '../components/ui.tsx';
import './operations.css';
import { AccessLog } from './access-log.tsx';
import { CacheContent } from './cache.tsx';
import { Certificates } from './certificates.tsx';
import { Configuration } from './configuration.tsx';
import { Keys } from './keys.tsx';
import { Nodes } from './nodes.tsx';
import { Sources } from './sources.tsx';

const t = texts.operations;
/** The parts of the operations: the keys, and the screens of what the server does. */
const tabs = [
  { path: '', name: t.keysTab },
  { path: 'log', name: texts.accessLog.tab, scope: 'admin' },
  { path: 'sources', name: texts.sources.tab },
  { path: 'cache', name: texts.cache.tab },
  { path: 'nodes', name: texts.nodes.tab },
  { path: 'certificates', name: texts.certificates.tab },
  { path: 'configuration', name: texts.configuration.tab, scope: 'admin' },
] as const;

/** What the server does, and the keys to it, as far as the scopes of the session reach. */
export function Operations({ route }: { route: Route }) {
  const at = route.path.split('/')[2] ?? '';
  const links = useCurrentInView<HTMLElement>(at);
  return (
    <>
      <nav ref={links} class="tabs" aria-label={t.tabs}>
        {tabs.map(({ path, name, ...tab }) =>
          'scope' in tab && !may(tab.scope) ? null : (
            <a
              key={path}
              href={linkTo(path === '' ? '/operations' : `/operations/${path}`)}
              aria-current={at === path ? 'page' : undefined}
            >
              {name}
            </a>
          ),
        )}
      </nav>
      <Tab name={at} route={route} />
    </>
  );
}

function Tab({ name, route }: { name: string; route: Route }) {
  const tab = tabs.find(({ path }) => path === name);
  if (tab !== undefined && 'scope' in tab && !may(tab.scope)) {
    return <NoScope title={tab.name} scope={tab.scope} />;
  }
  switch (name) {
    case 'log':
      return <AccessLog route={route} />;
    case 'sources':
      return <Sources />;
    case 'cache':
      return <CacheContent route={route} />;
    case 'nodes':
      return <Nodes />;
    case 'certificates':
      return <Certificates />;
    case 'configuration':
      return <Configuration route={route} />;
    default:
      return <Access />;
  }
}

function Access() {
  return (
    <>
      <ScreenHead title={t.keysTab} lead={t.lead} shown={['key.list', {}]} />
      {may('admin') ? (
        <>
          <Keys />
          <Sessions family="session" title={t.sessions} />
          <Sessions family="login" title={t.visitors} none={t.noVisitors} />
        </>
      ) : (
        <p class="note">{texts.states.scope('admin')}</p>
      )}
    </>
  );
}

interface SessionRow {
  readonly id: string;
  readonly created: string;
  readonly expires: string;
  /** The key of a session of the console, or the visitor who has signed in by `[login]`. */
  readonly name?: string;
  readonly user?: string;
  readonly roles?: readonly string[];
  readonly provider?: string;
}

/** The sessions of the console (`session`) or of visitors (`login`), each with a button to end it. */
function Sessions({
  family,
  title,
  none = '',
}: {
  family: 'session' | 'login';
  title: string;
  /** What an empty list says. */
  none?: string;
}) {
  const sessions = useLoad(
    (signal) => call<{ rows: readonly SessionRow[] }>(`${family}.list`, {}, { signal }),
    [],
    useLive(['keys']),
  );
  const [error, setError] = useState<unknown>();
  const end = async (id: string): Promise<void> => {
    setError(undefined);
    try {
      await call(`${family}.end`, { id });
    } catch (failure) {
      // One that has ended by itself meanwhile is gone, as it should be.
      const isGone = failure instanceof ApiError && failure.code === 'not_found';
      if (!isGone) setError(failure);
    }
    sessions.reload();
  };
  return (
    <section class="panel">
      <div class="panel-head">
        <h2>{title}</h2>
        <CopyCurl shown={[`${family}.list`, {}]} />
      </div>
      <Fault error={sessions.error ?? error} onRetry={sessions.reload} />
      {none !== '' && sessions.data?.rows.length === 0 ? <p class="quiet">{none}</p> : null}
      <ul class="table-list">
        {sessions.data?.rows.map(
          ({ id, user, name = user, roles = [], provider = 'login', ...row }) => (
            <li key={id}>
              <span>
                <b>{name}</b> {roles.join(', ')}
                <br />
                <span class="quiet">
                  {provider === 'login' ? '' : `${provider}, `}
                  <When time={row.created} />, {t.until} <When time={row.expires} />
                </span>
              </span>
              <button type="button" class="quiet-button danger" onClick={() => void end(id)}>
                {t.end}
                <span class="unseen"> {user ?? id}</span>
              </button>
            </li>
          ),
        )}
      </ul>
    </section>
  );
}
