import { useState } from 'preact/hooks';
import { ApiError, call, may, type JsonObject } from '../api/api.ts';
import { useLive } from '../api/live.ts';
import { linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { useLoad } from '../components/loading.ts';
import {
  CopyCurl,
  Fault,
  Field,
  NoScope,
  ScreenHead,
  useCurrentInView,
  When,
} from '../components/ui.tsx';
import './operations.css';
import { AccessLog } from './access-log.tsx';
import { CacheContent } from './cache.tsx';
import { Certificates } from './certificates.tsx';
import { Configuration } from './configuration.tsx';
import { Nodes } from './nodes.tsx';
import { Sources } from './sources.tsx';

const t = texts.operations;
/** Without `follow`: a key of a node is made where the node is (docs/how-to/several-machines.md). */
const keyScopes = [
  ...['render', 'read', 'design', 'webhook', 'event', 'verify', 'record.read', 'record.write'],
  'admin',
];

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

interface KeyRow {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly created: string;
  /** What the key is bound to. */
  readonly origins?: readonly string[];
  readonly paths?: readonly string[];
  /** Null if the key was never used at this node. */
  readonly last_used: string | null;
}

function Keys() {
  const keys = useLoad(
    (signal) => call<{ rows: readonly KeyRow[] }>('key.list', {}, { signal }),
    [],
    useLive(['keys']),
  );
  const [error, setError] = useState<unknown>();
  const revoke = async ({ id, name }: KeyRow): Promise<void> => {
    if (!confirm(t.revokeConfirm(name))) return;
    try {
      await call('key.revoke', { id });
      keys.reload();
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <section class="panel">
      <div class="panel-head">
        <h2>{t.keys}</h2>
      </div>
      <Fault error={keys.error ?? error} onRetry={keys.reload} />
      <ul class="table-list">
        {keys.data?.rows.map((key) => (
          <li key={key.id}>
            <span>
              <b>{key.name}</b> <span class="quiet">{key.scopes.join(', ')}</span>
              {key.origins === undefined && key.paths === undefined ? null : (
                <>
                  {' '}
                  · {t.bound}{' '}
                  <code>{[...(key.origins ?? []), ...(key.paths ?? [])].join(' ')}</code>
                </>
              )}
              <br />
              <span class="quiet">
                {t.created} <When time={key.created} /> · <LastUse time={key.last_used} /> ·{' '}
                <code>{key.id}</code> ·{' '}
                <a href={linkTo('/history', { by: key.id })}>
                  {t.changes}
                  <span class="unseen"> {key.name}</span>
                </a>
              </span>
            </span>
            <button type="button" class="quiet-button danger" onClick={() => void revoke(key)}>
              {t.revoke}
              <span class="unseen"> {key.name}</span>
            </button>
          </li>
        ))}
      </ul>
      <NewKey onDone={keys.reload} />
    </section>
  );
}

function LastUse({ time }: { time: string | null }) {
  if (time === null) return <>{t.neverUsed}</>;
  return (
    <>
      {t.lastUsed} <When time={time} />
    </>
  );
}

/** The words of texts as lists, without the empty ones. */
function listed(texts: Readonly<Record<string, string>>): JsonObject {
  const lists = Object.entries(texts).map(
    ([name, text]) => [name, text.split(/[\s,]+/).filter((word) => word !== '')] as const,
  );
  return Object.fromEntries(lists.filter(([, words]) => words.length > 0));
}

function TextField({
  label,
  value,
  onInput,
}: {
  label: string;
  value: string;
  onInput: (value: string) => void;
}) {
  return (
    <Field label={label}>
      <input
        type="text"
        value={value}
        onInput={({ currentTarget }) => {
          onInput(currentTarget.value);
        }}
      />
    </Field>
  );
}

function ScopeChoice({
  scopes,
  onChange,
}: {
  scopes: readonly string[];
  onChange: (scopes: readonly string[]) => void;
}) {
  return (
    <fieldset>
      <legend class="field-label">{t.keyScopes}</legend>
      {keyScopes.map((scope) => (
        <label key={scope} class="check">
          <input
            type="checkbox"
            checked={scopes.includes(scope)}
            onChange={({ currentTarget: { checked } }) => {
              const others = scopes.filter((one) => one !== scope);
              onChange(checked ? [...others, scope] : others);
            }}
          />
          {scope}
        </label>
      ))}
    </fieldset>
  );
}

function NewKey({ onDone }: { onDone: () => void }) {
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<readonly string[]>(['read']);
  const [origins, setOrigins] = useState('');
  const [paths, setPaths] = useState('');
  const [made, setMade] = useState('');
  const [error, setError] = useState<unknown>();
  const [isMaking, setMaking] = useState(false);
  const make = async (): Promise<void> => {
    setMaking(true);
    setError(undefined);
    try {
      const v = { name, scopes, ...listed({ origins, paths }) };
      const { key } = await call<{ key: string }>('key.insert', v);
      setMade(key);
      // The name of the next key may be there already.
      setName((now) => (now === name ? '' : now));
      onDone();
    } catch (failure) {
      setError(failure);
    }
    setMaking(false);
  };
  return (
    <form
      class="new-key"
      onSubmit={(event) => {
        event.preventDefault();
        void make();
      }}
    >
      <h3>{t.newKey}</h3>
      <Field label={t.keyName}>
        <input
          type="text"
          required
          value={name}
          onInput={({ currentTarget }) => {
            setName(currentTarget.value);
          }}
        />
      </Field>
      <ScopeChoice scopes={scopes} onChange={setScopes} />
      <TextField label={t.keyOrigins} value={origins} onInput={setOrigins} />
      <TextField label={t.keyPaths} value={paths} onInput={setPaths} />
      <button type="submit" disabled={isMaking || scopes.length === 0}>
        {t.makeKey}
      </button>
      <Fault error={error} />
      <p role="status">
        {made === '' ? null : (
          <>
            {t.madeKey} <code>{made}</code>
          </>
        )}
      </p>
    </form>
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
