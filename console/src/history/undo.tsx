import { useState } from 'preact/hooks';
import { call, type Json } from '../api/api.ts';
import { linkTo } from '../route.ts';
import { texts } from '../texts.ts';
import { useLoad } from '../components/loading.ts';
import { Busy, CopyCurl, Fault } from '../components/ui.tsx';

const t = texts.history;

/** Which changes to revert, as userinterface.invalidate takes it. */
export interface Selection {
  readonly id?: string;
  readonly by?: string;
  readonly txn?: string;
  readonly from?: string;
  readonly until?: string;
  /** The table of a row. */
  readonly table?: string;
}

interface Report {
  readonly records: number;
  readonly rows: number;
  readonly gone: number;
  readonly restored: number;
  readonly changes: readonly {
    readonly id: string;
    readonly becomes: string;
    readonly fields: Readonly<Record<string, { readonly now: Json; readonly then: Json }>>;
  }[];
  readonly conflicting: number;
  readonly digest: string;
}

interface Done {
  readonly txn: string | null;
}

/** Reverts changes in two steps: what would change, then the confirmation; it can be reverted, too. */
export function Undo({
  selection,
  operation = 'userinterface.invalidate',
  onDone,
  onClose,
}: {
  selection: Selection;
  /** The operation that reverts records of this kind. */
  operation?: string;
  onDone?: () => void;
  onClose: () => void;
}) {
  const [current, setCurrent] = useState(selection);
  const [done, setDone] = useState<Done>();
  const [error, setError] = useState<unknown>();
  const report = useLoad((signal) => call<Report>(operation, current, { signal }), [current]);
  const confirm = async (digest: string): Promise<void> => {
    setError(undefined);
    try {
      setDone(await call<Done>(operation, { ...current, confirm: digest }));
      onDone?.();
    } catch (failure) {
      setError(failure);
      report.reload();
    }
  };
  const txn = done?.txn;
  return (
    <section class="panel" aria-label={t.undoTitle}>
      <div class="panel-head">
        <h2>{t.undoTitle}</h2>
        <CopyCurl shown={[operation, current]} />
        <button type="button" class="quiet-button" onClick={onClose}>
          {t.cancel}
        </button>
      </div>
      <Fault error={error ?? report.error} />
      {done === undefined ? (
        <>
          <p class="note">{t.undoLead}</p>
          {report.data === undefined || report.isLoading ? (
            report.error === undefined && <Busy />
          ) : (
            <Plan
              report={report.data}
              hasPages={operation === 'userinterface.invalidate'}
              onConfirm={confirm}
            />
          )}
        </>
      ) : (
        <p role="status">
          {t.done}{' '}
          {typeof txn === 'string' ? (
            <button
              type="button"
              onClick={() => {
                setDone(undefined);
                setCurrent({ txn, ...tableIn(selection) });
              }}
            >
              {t.again}
            </button>
          ) : null}
        </p>
      )}
    </section>
  );
}

function tableIn({ table }: Selection): Pick<Selection, 'table'> {
  return table === undefined ? {} : { table };
}

function Plan({
  report,
  hasPages,
  onConfirm,
}: {
  report: Report;
  hasPages: boolean;
  onConfirm: (digest: string) => Promise<void>;
}) {
  const { records, rows, gone, restored, changes, conflicting, digest } = report;
  if (rows === 0) return <p>{t.nothing}</p>;
  const facts: readonly (readonly [string, number])[] = [
    [t.records, records],
    [t.affected, rows],
    [t.gone, gone],
    [t.back, restored],
    ...(conflicting > 0 ? ([[t.conflicts, conflicting]] as const) : []),
  ];
  return (
    <>
      <dl class="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value.toLocaleString()}</dd>
          </div>
        ))}
      </dl>
      <ul class="plan">
        {changes.slice(0, 50).map(({ id, becomes, fields }) => (
          <li key={id}>
            {hasPages ? <a href={linkTo('/history', { id })}>{pathOf(fields) ?? id}</a> : id}{' '}
            <span class="tag">{becomes}</span>{' '}
            <span class="quiet">{Object.keys(fields).join(', ')}</span>
          </li>
        ))}
      </ul>
      <button type="button" class="main-button" onClick={() => void onConfirm(digest)}>
        {t.confirm(rows)}
      </button>
    </>
  );
}

function pathOf(fields: Report['changes'][number]['fields']): string | undefined {
  const path = fields.path?.now ?? fields.path?.then;
  return typeof path === 'string' ? path : undefined;
}
