import { useState } from 'preact/hooks';
import { call, type JsonObject } from '../api/api.ts';
import { currentDraft } from '../api/session.ts';
import { linkTo } from '../route.ts';
import { texts } from '../texts.ts';
import { useLoad } from '../components/loading.ts';
import { Busy, CopyCurl, Fault, When } from '../components/ui.tsx';
import { Undo } from '../history/undo.tsx';
import { Differences, type HistoryRow } from '../history/version.tsx';

const t = texts.history;

/** The versions of a row, with what one of them changed; and restoring one. */
export function RowHistory({
  table,
  id,
  seq,
  onChange,
}: {
  table: string;
  id: string;
  seq: string | null;
  onChange?: () => void;
}) {
  const history = useLoad(
    (signal) =>
      call<{ rows: readonly HistoryRow[] }>(
        'record.read',
        { table, id },
        { qk: 'history', signal, isLive: true },
      ),
    [table, id],
  );
  const rows = history.data?.rows ?? [];
  const chosen = rows.find((row) => String(row.seq) === seq);
  return (
    <section class="row-history">
      <div class="panel-head">
        <h2>{currentDraft() === undefined ? texts.tables.history : texts.drafts.liveHistory}</h2>
        <CopyCurl shown={['record.read', { table, id }, { qk: 'history', isLive: true }]} />
      </div>
      <Fault error={history.error} onRetry={history.reload} />
      <div class="versions">
        <ol class="version-list" aria-label={t.version}>
          {rows.map((row) => (
            <li key={row.seq}>
              <a
                href={linkTo(`/tables/${table}/row/${id}`, { seq: row.seq })}
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
        {chosen === undefined ? (
          <p class="note">{texts.tables.chooseVersion}</p>
        ) : (
          <RowVersion
            key={chosen.seq}
            {...{ table, id, row: chosen }}
            isNewest={chosen === rows[0]}
            onChange={() => {
              history.reload();
              onChange?.();
            }}
          />
        )}
      </div>
    </section>
  );
}

function RowVersion({
  table,
  id,
  row,
  isNewest,
  onChange,
}: {
  table: string;
  id: string;
  row: HistoryRow;
  isNewest: boolean;
  onChange: () => void;
}) {
  const at = (seq: number): Promise<JsonObject | undefined> =>
    call<JsonObject>('record.read', { table, id, as_of: String(seq) }).catch(() => undefined);
  const states = useLoad(
    () => Promise.all([row.action === 'insert' ? undefined : at(row.seq - 1), at(row.seq)]),
    [id, row.seq],
  );
  const [isUndoing, setUndoing] = useState(false);
  const [before, after] = states.data ?? [];
  return (
    <section class="version">
      <p class="note">
        <a href={linkTo('/history', { by: row.by })}>{row.by_name ?? row.by}</a>
        {' · '}
        <a href={linkTo('/history', { txn: row.txn })}>{t.txn}</a>
      </p>
      {isNewest ? null : (
        <p>
          <button
            type="button"
            onClick={() => {
              setUndoing(true);
            }}
          >
            {t.restore}
          </button>
        </p>
      )}
      {isUndoing ? (
        <Undo
          isLive
          // Everything after this version goes.
          selection={{ table, id, from: String(row.seq + 1) }}
          operation="record.invalidate"
          onDone={onChange}
          onClose={() => {
            setUndoing(false);
          }}
        />
      ) : null}
      {states.isLoading ? <Busy /> : <Differences before={before} after={after} />}
    </section>
  );
}
