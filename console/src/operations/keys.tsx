import { useState } from 'preact/hooks';
import { call, type JsonObject } from '../api/api.ts';
import { useLive } from '../api/live.ts';
import { useLoad } from '../components/loading.ts';
import { Fault, Field, When } from '../components/ui.tsx';
import { MomentField, TimeZones } from '../pages/moment-field.tsx';
import { linkTo } from '../route.ts';
import { texts } from '../texts.ts';

const t = texts.operations;
/** Without `follow`: a key of a node is made where the node is (docs/how-to/several-machines.md). */
const keyScopes = [
  ...['render', 'read', 'design', 'webhook', 'event', 'verify', 'record.read', 'record.write'],
  'admin',
];

interface KeyRow {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly created: string;
  /** What the key is bound to. */
  readonly origins?: readonly string[];
  readonly paths?: readonly string[];
  readonly until?: string;
  readonly state: 'valid' | 'ending' | 'ended';
  /** Null if the key was never used at this node. */
  readonly last_used: string | null;
}

/** The API keys, each with buttons to move its end and to revoke it, and a form for a new one. */
export function Keys() {
  const keys = useLoad(
    (signal) => call<{ rows: readonly KeyRow[] }>('key.list', {}, { signal }),
    [],
    useLive(['keys']),
  );
  return (
    <section class="panel">
      <div class="panel-head">
        <h2>{t.keys}</h2>
      </div>
      <Fault error={keys.error} onRetry={keys.reload} />
      <ul class="table-list">
        {keys.data?.rows.map((key) => (
          <KeyItem key={key.id} of={key} onChange={keys.reload} />
        ))}
      </ul>
      <NewKey onDone={keys.reload} />
      <TimeZones />
    </section>
  );
}

function KeyItem({ of: key, onChange }: { of: KeyRow; onChange: () => void }) {
  const [error, setError] = useState<unknown>();
  const [isMoving, setMoving] = useState(false);
  const { id, name } = key;
  const revoke = async (): Promise<void> => {
    if (!confirm(t.revokeConfirm(name))) return;
    try {
      await call('key.revoke', { id });
      onChange();
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <li>
      <div>
        <KeyFacts of={key} />
        {isMoving ? (
          <MoveEnd
            of={key}
            onDone={() => {
              setMoving(false);
              onChange();
            }}
          />
        ) : null}
      </div>
      <span>
        <button
          type="button"
          class="quiet-button"
          aria-expanded={isMoving}
          onClick={() => {
            setMoving(!isMoving);
          }}
        >
          {t.moveEnd}
          <span class="unseen"> {name}</span>
        </button>{' '}
        <button type="button" class="quiet-button danger" onClick={() => void revoke()}>
          {t.revoke}
          <span class="unseen"> {name}</span>
        </button>
      </span>
      <Fault error={error} />
    </li>
  );
}

function KeyFacts({ of: key }: { of: KeyRow }) {
  const { id, name, scopes, origins, paths } = key;
  return (
    <span>
      <b>{name}</b> <span class="quiet">{scopes.join(', ')}</span>
      {origins === undefined && paths === undefined ? null : (
        <>
          {' '}
          · {t.bound} <code>{[...(origins ?? []), ...(paths ?? [])].join(' ')}</code>
        </>
      )}
      <br />
      <span class="quiet">
        {t.created} <When time={key.created} /> · <LastUse time={key.last_used} /> ·{' '}
        <End of={key} />
        <code>{id}</code> ·{' '}
        <a href={linkTo('/history', { by: id })}>
          {t.changes}
          <span class="unseen"> {name}</span>
        </a>
      </span>
    </span>
  );
}

/** When a key ends, and whether that is soon or has passed; nothing for one without an end. */
function End({ of: { until, state } }: { of: KeyRow }) {
  if (until === undefined) return null;
  return (
    <>
      <span class={state === 'valid' ? '' : 'failed'}>
        {t.keyStates[state]} <When time={until} />
      </span>{' '}
      ·{' '}
    </>
  );
}

function MoveEnd({ of: key, onDone }: { of: KeyRow; onDone: () => void }) {
  const [until, setUntil] = useState(key.until ?? '');
  const [error, setError] = useState<unknown>();
  const move = async (): Promise<void> => {
    try {
      await call('key.edit', { id: key.id, until: until === '' ? 'never' : until });
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
        void move();
      }}
    >
      <EndField text={until} onText={setUntil} />
      <button type="submit">{t.saveEnd}</button>
      <Fault error={error} />
    </form>
  );
}

function EndField({ text, onText }: { text: string; onText: (text: string) => void }) {
  return (
    <MomentField
      {...{ text, onText }}
      label={t.keyUntil}
      zoneLabel={t.keyZone}
      problems={noProblems}
    />
  );
}

const noProblems: readonly string[] = [];

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
  const [until, setUntil] = useState('');
  const [made, setMade] = useState('');
  const [error, setError] = useState<unknown>();
  const [isMaking, setMaking] = useState(false);
  const make = async (): Promise<void> => {
    setMaking(true);
    setError(undefined);
    try {
      const end = until === '' ? {} : { until };
      const v = { name, scopes, ...end, ...listed({ origins, paths }) };
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
      <EndField text={until} onText={setUntil} />
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
