import { useState } from 'preact/hooks';
import { call, may } from '../api/api.ts';
import { goTo, linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { useLoad, usePages } from '../components/loading.ts';
import { UrlInput } from '../components/url-field.tsx';
import { Busy, Fault, ScreenHead, When } from '../components/ui.tsx';
import { ChangeList, type ChangeRow } from './changes.tsx';
import { Undo } from './undo.tsx';
import { Version, type HistoryRow } from './version.tsx';
import '../components/panes.css';

const t = texts.history;
const filterNames = ['by', 'txn', 'action', 'from', 'until'] as const;

/** The history of the whole site, or of one page rule. */
export function History({ route: { params } }: { route: Route }) {
  const id = params.get('id');
  if (id !== null) return <RecordHistory key={id} id={id} seq={params.get('seq')} />;
  const filters = Object.fromEntries(
    filterNames.flatMap((name) => {
      const value = params.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );
  return <SiteHistory filters={filters} />;
}

type Filters = Readonly<Record<string, string>>;

function SiteHistory({ filters }: { filters: Filters }) {
  const selected = JSON.stringify(filters);
  // The selection that is to be reverted.
  const [undoing, setUndoing] = useState<string>();
  const { action: _action, ...selection } = filters;
  const isSelected = Object.keys(selection).length > 0;
  // All of a transaction is reverted as a whole; other selections are about pages.
  const isWhole = Object.keys(selection).join() === 'txn';
  const mayUndo = may('design') || (isWhole && may('webhook'));
  return (
    <>
      <ScreenHead title={t.title} lead={t.lead} shown={['change.list', filters]}>
        <a class="quiet-button" href="#/history/past">
          {t.past}
        </a>
        {isSelected && mayUndo ? (
          <button
            type="button"
            onClick={() => {
              setUndoing(selected);
            }}
          >
            {t.undo}
          </button>
        ) : null}
      </ScreenHead>
      <FilterForm filters={filters} />
      {undoing === selected ? (
        <Undo
          isLive
          selection={selection}
          {...(isWhole && { operation: 'change.invalidate' })}
          onClose={() => {
            setUndoing(undefined);
          }}
        />
      ) : null}
      <SelectedChanges key={selected} filters={filters} />
    </>
  );
}

function SelectedChanges({ filters }: { filters: Filters }) {
  const { rows, isEnd, isLoading, error, more } = usePages<ChangeRow, number>((before) =>
    call('change.list', { ...filters, limit: 100, ...(before !== undefined && { before }) }),
  );
  return (
    <>
      <SelectedBy filters={filters} rows={rows} />
      <Fault error={error} />
      <ChangeList
        rows={rows}
        {...(filters.txn === undefined && {
          folded: filters.by === undefined ? 'runs' : 'transactions',
        })}
      />
      {isLoading ? <Busy /> : null}
      {isEnd ? (
        <p class="note">{t.everything}</p>
      ) : (
        <button type="button" onClick={more}>
          {texts.states.more}
        </button>
      )}
    </>
  );
}

/** The name of the key whose changes are shown: its field has its id. */
function SelectedBy({ filters: { by }, rows }: { filters: Filters; rows: readonly ChangeRow[] }) {
  const name = rows[0]?.by_name;
  if (by === undefined || name === undefined) return null;
  return <p>{t.changesOf(name)}</p>;
}

/** The filters; on a phone, they are folded, so that the changes are in view. */
function FilterForm({ filters }: { filters: Filters }) {
  const isNarrow = matchMedia('(max-width: 56rem)').matches;
  const form = <FilterFields filters={filters} />;
  if (!isNarrow) return form;
  return (
    <details class="folded-filters" open={Object.keys(filters).length > 0}>
      <summary>{t.filters}</summary>
      {form}
    </details>
  );
}

function FilterFields({ filters }: { filters: Filters }) {
  const set = (name: string, value: string): void => {
    goTo('/history', { ...filters, [name]: value });
  };
  const texted = ['by', 'txn'] as const;
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
      }}
    >
      {texted.map((name) => (
        <label key={name} class="inline-field">
          {t[name]}
          <UrlInput
            type="text"
            value={filters[name] ?? ''}
            onSend={(value) => {
              set(name, value);
            }}
          />
        </label>
      ))}
      <label class="inline-field">
        {t.action}
        <select
          value={filters.action ?? ''}
          onChange={({ currentTarget }) => {
            set('action', currentTarget.value);
          }}
        >
          <option value="">{t.any}</option>
          {Object.entries(t.actions).map(([action, name]) => (
            <option key={action} value={action}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {(['from', 'until'] as const).map((name) => (
        <label key={name} class="inline-field">
          {t[name]}
          <UrlInput
            type="datetime-local"
            step="1"
            value={localTime(filters[name])}
            onSend={(value) => {
              set(name, value === '' ? '' : new Date(value).toISOString());
            }}
          />
        </label>
      ))}
      {Object.keys(filters).length === 0 ? null : <a href="#/history">{t.clear}</a>}
    </form>
  );
}

/** A moment as the control for dates has it: in the zone of the browser, without a name of it. */
function localTime(moment = ''): string {
  const date = new Date(moment);
  if (Number.isNaN(date.getTime())) return '';
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}

/** The versions of one page rule, with the differences between one and the one before it. */
function RecordHistory({ id, seq }: { id: string; seq: string | null }) {
  const history = useLoad(
    (signal) =>
      call<{ rows: readonly HistoryRow[] }>(
        'userinterface.read',
        { id },
        { qk: 'history', signal, isLive: true },
      ),
    [id],
  );
  const rows = history.data?.rows ?? [];
  const chosen = rows.find((row) => String(row.seq) === seq) ?? rows[0];
  const newest = rows[0];
  return (
    <>
      <ScreenHead
        title={t.record}
        back={{ href: '#/history', name: t.whole }}
        shown={['userinterface.read', { id }, { qk: 'history', isLive: true }]}
      >
        <a class="quiet-button" href={`#/pages/${id}`}>
          {t.editPage}
        </a>
      </ScreenHead>
      <Fault error={history.error} onRetry={history.reload} />
      <div class="versions">
        <ol class="version-list" aria-label={t.version}>
          {rows.map((row) => (
            <li key={row.seq}>
              <a
                href={linkTo('/history', { id, seq: row.seq })}
                aria-current={row.seq === chosen?.seq ? 'true' : undefined}
              >
                {t.actions[row.action]} <span class="quiet">{row.seq}</span>
                {row.invalidated === undefined ? null : <span class="tag">{t.reverted}</span>}
                <br />
                <span class="quiet">
                  <When time={row.dtu_stored} />
                </span>
              </a>
            </li>
          ))}
        </ol>
        {chosen === undefined || newest === undefined ? null : (
          <Version
            key={chosen.seq}
            id={id}
            row={chosen}
            newest={newest.seq}
            onChange={history.reload}
          />
        )}
      </div>
    </>
  );
}
