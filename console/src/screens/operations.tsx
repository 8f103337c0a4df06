import { useState } from 'preact/hooks';
import { call, may } from '../api.ts';
import { texts } from '../texts.ts';
import { Busy, bytesText, CopyCurl, Fault, Field, ScreenHead, useLoad, When } from '../ui.tsx';

const t = texts.operations;
const keyScopes = ['render', 'read', 'design', 'webhook', 'event', 'verify', 'admin'] as const;

/** Cache, API keys and sessions, as far as the scopes of the session reach. */
export function Operations() {
  return (
    <>
      <ScreenHead title={t.title} shown={['server.status', {}]} />
      <Cache />
      {may('admin') ? (
        <>
          <Keys />
          <Sessions />
        </>
      ) : (
        <p class="note">{texts.states.scope('admin')}</p>
      )}
    </>
  );
}

interface CacheStatus {
  readonly answers: number;
  readonly urls: number;
  readonly bytes: number;
  readonly bytes_max: number;
}

function Cache() {
  const status = useLoad((signal) => call<CacheStatus>('cache.status', {}, { signal }), []);
  const [address, setAddress] = useState('');
  const [said, setSaid] = useState('');
  const [error, setError] = useState<unknown>();
  const purge = async (v: object): Promise<void> => {
    setError(undefined);
    try {
      const { urls } = await call<{ urls: number }>('cache.purge', v);
      setSaid(t.purged(urls));
      status.reload();
    } catch (failure) {
      setError(failure);
    }
  };
  const { data } = status;
  const asked = address.endsWith('*') ? { prefix: address.slice(0, -1) } : { url: address };
  return (
    <section class="panel">
      <div class="panel-head">
        <h2>{t.cache}</h2>
        <CopyCurl shown={['cache.status', {}]} />
      </div>
      <Fault error={status.error ?? error} onRetry={status.reload} />
      {data === undefined ? (
        <Busy />
      ) : (
        <dl class="facts">
          <div>
            <dt>{t.responses}</dt>
            <dd>{data.answers.toLocaleString()}</dd>
          </div>
          <div>
            <dt>{t.used}</dt>
            <dd>
              {bytesText(data.bytes)} / {bytesText(data.bytes_max)}
            </dd>
          </div>
        </dl>
      )}
      {may('design') ? (
        <form
          class="actions"
          onSubmit={(event) => {
            event.preventDefault();
            void purge(asked);
          }}
        >
          <input
            type="text"
            aria-label={t.purgeUrl}
            placeholder="/stock/*"
            required
            value={address}
            onInput={({ currentTarget }) => {
              setAddress(currentTarget.value);
            }}
          />
          <button type="submit">{t.purge}</button>
          <button type="button" onClick={() => void purge({ all: true })}>
            {t.purgeAll}
          </button>
        </form>
      ) : null}
      <p role="status">{said}</p>
    </section>
  );
}

interface KeyRow {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly created: string;
}

function Keys() {
  const keys = useLoad(
    (signal) => call<{ rows: readonly KeyRow[] }>('key.list', {}, { signal }),
    [],
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
        <CopyCurl shown={['key.list', {}]} />
      </div>
      <Fault error={keys.error ?? error} onRetry={keys.reload} />
      <ul class="table-list">
        {keys.data?.rows.map((key) => (
          <li key={key.id}>
            <span>
              <b>{key.name}</b> <span class="quiet">{key.scopes.join(', ')}</span>
              <br />
              <span class="quiet">
                {t.created} <When time={key.created} /> · {key.id}
              </span>
            </span>
            <button type="button" class="quiet-button" onClick={() => void revoke(key)}>
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

function NewKey({ onDone }: { onDone: () => void }) {
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<readonly string[]>(['read']);
  const [made, setMade] = useState('');
  const [error, setError] = useState<unknown>();
  const make = async (): Promise<void> => {
    setError(undefined);
    try {
      const { key } = await call<{ key: string }>('key.insert', { name, scopes });
      setMade(key);
      setName('');
      onDone();
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <form
      class="new-key"
      onSubmit={(event) => {
        event.preventDefault();
        void make();
      }}
    >
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
      <fieldset>
        <legend class="field-label">{t.keyScopes}</legend>
        {keyScopes.map((scope) => (
          <label key={scope} class="check">
            <input
              type="checkbox"
              checked={scopes.includes(scope)}
              onChange={({ currentTarget: { checked } }) => {
                setScopes((all) =>
                  checked ? [...all, scope] : all.filter((one) => one !== scope),
                );
              }}
            />
            {scope}
          </label>
        ))}
      </fieldset>
      <button type="submit" disabled={scopes.length === 0}>
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
  readonly name: string;
  readonly created: string;
  readonly expires: string;
}

function Sessions() {
  const sessions = useLoad(
    (signal) => call<{ rows: readonly SessionRow[] }>('session.list', {}, { signal }),
    [],
  );
  const end = async (id: string): Promise<void> => {
    await call('session.end', { id }).catch(() => undefined);
    sessions.reload();
  };
  return (
    <section class="panel">
      <div class="panel-head">
        <h2>{t.sessions}</h2>
        <CopyCurl shown={['session.list', {}]} />
      </div>
      <Fault error={sessions.error} onRetry={sessions.reload} />
      <ul class="table-list">
        {sessions.data?.rows.map(({ id, name, created, expires }) => (
          <li key={id}>
            <span>
              <b>{name}</b>
              <br />
              <span class="quiet">
                <When time={created} />, {t.until} <When time={expires} />
              </span>
            </span>
            <button type="button" class="quiet-button" onClick={() => void end(id)}>
              {t.end}
              <span class="unseen"> {id}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
