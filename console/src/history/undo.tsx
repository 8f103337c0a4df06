import { useState } from 'preact/hooks';
import { call, type Json } from '../api/api.ts';
import { linkTo } from '../route.ts';
import { texts } from '../texts.ts';
import { useLoad } from '../components/loading.ts';
import { Busy, CopyCurl, Fault, When } from '../components/ui.tsx';

const t = texts.history;
/** Records of a plan that are listed. */
const shownMax = 50;

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

interface RevertedRecord {
  readonly family: string;
  readonly id: string;
  readonly path?: string;
  readonly becomes: string;
  readonly fields: Readonly<Record<string, { readonly now: Json; readonly then: Json }>>;
}

interface Conflict {
  readonly id: string;
  readonly rows: readonly number[];
  /** The newest of these changes. */
  readonly later: readonly {
    readonly seq: number;
    readonly by: string;
    readonly by_name?: string;
    readonly at: string;
    readonly action: keyof typeof t.laterActions;
    readonly fields: readonly string[];
  }[];
}

interface Report {
  readonly records: number;
  readonly rows: number;
  readonly gone: number;
  readonly restored: number;
  readonly changes: readonly RevertedRecord[];
  readonly conflicts: readonly Conflict[];
  readonly conflicting: number;
  /** What else the transaction has changed, which stays. */
  readonly others: readonly { readonly family: string; readonly rows: number }[];
  readonly digest: string;
}

interface Done {
  readonly txn: string | null;
}

interface UndoProps {
  readonly selection: Selection;
  /** Whether it reverts live changes, also while the tab works in a draft. */
  readonly isLive?: boolean;
  /** The operation that reverts records of this kind. */
  readonly operation?: string;
  readonly onDone?: () => void;
  readonly onClose: () => void;
}

/** Reverts changes in two steps: what would change, then the confirmation; it can be reverted, too. */
export function Undo({
  selection,
  operation = 'userinterface.invalidate',
  isLive = false,
  onDone,
  onClose,
}: UndoProps) {
  const [current, setCurrent] = useState(selection);
  const [left, setLeft] = useState<readonly RevertedRecord[]>([]);
  const [done, setDone] = useState<Done>();
  const [error, setError] = useState<unknown>();
  const input = { ...current, ...(left.length > 0 && { except: left.map(({ id }) => id) }) };
  const report = useLoad(
    async (signal) => ({ ...(await call<Report>(operation, input, { signal, isLive })), of: left }),
    [current, left],
  );
  const confirm = async (digest: string): Promise<void> => {
    setError(undefined);
    try {
      setDone(await call<Done>(operation, { ...input, confirm: digest }, { isLive }));
      onDone?.();
    } catch (failure) {
      setError(failure);
      report.reload();
    }
  };
  const plan = {
    left,
    onLeft: setLeft,
    onConfirm: confirm,
    isCurrent: !report.isLoading && report.data?.of === left,
  };
  return (
    <section class="panel" aria-label={t.undoTitle}>
      <div class="panel-head">
        <h2>{t.undoTitle}</h2>
        <CopyCurl shown={[operation, input, { isLive }]} />
        <button type="button" class="quiet-button" onClick={onClose}>
          {t.cancel}
        </button>
      </div>
      <Fault error={error ?? report.error} />
      {done === undefined ? (
        <>
          <p class="note">{t.undoLead}</p>
          {report.data === undefined && report.error === undefined ? <Busy /> : null}
          {report.data === undefined ? null : <Plan {...plan} report={report.data} />}
        </>
      ) : (
        <Reverted
          txn={done.txn}
          onAgain={(txn) => {
            setDone(undefined);
            setLeft([]);
            setCurrent({ txn, ...tableIn(selection) });
          }}
        />
      )}
    </section>
  );
}

/** That the changes are reverted, and a button to revert this. */
function Reverted({ txn, onAgain }: { txn: string | null; onAgain: (txn: string) => void }) {
  return (
    <p role="status">
      {t.done}{' '}
      {txn === null ? null : (
        <button
          type="button"
          onClick={() => {
            onAgain(txn);
          }}
        >
          {t.again}
        </button>
      )}
    </p>
  );
}

function tableIn({ table }: Selection): Pick<Selection, 'table'> {
  return table === undefined ? {} : { table };
}

function Plan({
  report,
  isCurrent,
  left,
  onLeft,
  onConfirm,
}: {
  report: Report;
  /** Whether it is the plan of this selection; a former one stays in view until the next is there. */
  isCurrent: boolean;
  /** The records that stay as they are. */
  left: readonly RevertedRecord[];
  onLeft: (left: readonly RevertedRecord[]) => void;
  onConfirm: (digest: string) => Promise<void>;
}) {
  const { rows, changes, conflicts, digest } = report;
  if (rows === 0 && left.length === 0) return <Nothing report={report} />;
  const later = new Map(conflicts.map((one) => [one.id, one]));
  const leftIds = new Set(left.map(({ id }) => id));
  const inPlan = changes.filter(({ id }) => !leftIds.has(id));
  const edited = inPlan.filter(({ id }) => later.has(id));
  const others = inPlan.filter(({ id }) => !later.has(id));
  return (
    <>
      <Counts report={report} />
      {edited.length === 0 ? null : (
        <p>
          {t.conflictsLead}{' '}
          <button
            type="button"
            class="quiet-button"
            onClick={() => {
              onLeft([...left, ...edited]);
            }}
          >
            {t.leaveConflicts(edited.length)}
          </button>
        </p>
      )}
      <ul class="plan">
        {[...edited, ...left, ...others].slice(0, shownMax + left.length).map((one) => (
          <PlannedRecord
            key={one.id}
            record={one}
            conflict={later.get(one.id)}
            isLeft={leftIds.has(one.id)}
            onLeft={(isLeft) => {
              const rest = left.filter(({ id }) => id !== one.id);
              onLeft(isLeft ? [...rest, one] : rest);
            }}
          />
        ))}
      </ul>
      <button
        type="button"
        class="main-button"
        disabled={!isCurrent || rows === 0}
        onClick={() => void onConfirm(digest)}
      >
        {t.confirm(rows)}
      </button>
    </>
  );
}

function Nothing({ report }: { report: Report }) {
  return (
    <>
      <p>{t.nothing}</p>
      <Others report={report} />
    </>
  );
}

/** What of the transaction stays: by family, with the number of changes. */
function Others({ report: { others } }: { report: Report }) {
  if (others.length === 0) return null;
  const kinds = others.map(({ family, rows }) => `${family} (${t.rows(rows)})`).join(', ');
  return <p class="note">{t.othersStay(kinds)}</p>;
}

function Counts({ report }: { report: Report }) {
  const { records, rows, gone, restored, conflicting } = report;
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
      <Others report={report} />
    </>
  );
}

/** A record of the plan, with what changed in it since, and whether it is left as it is. */
function PlannedRecord({
  record: { family, id, path, becomes, fields },
  conflict,
  isLeft,
  onLeft,
}: {
  record: RevertedRecord;
  conflict: Conflict | undefined;
  isLeft: boolean;
  onLeft: (isLeft: boolean) => void;
}) {
  const isPage = family === 'userinterface';
  const unshown = (conflict?.rows.length ?? 0) - (conflict?.later.length ?? 0);
  return (
    <li>
      <label class="check">
        <input
          type="checkbox"
          checked={!isLeft}
          onChange={({ currentTarget }) => {
            onLeft(!currentTarget.checked);
          }}
        />
        <span class="unseen">{t.revertThis} </span>
        <span>{path ?? (isPage ? id : `${family} ${id}`)}</span>
      </label>{' '}
      <span class="tag">{isLeft ? t.stays : becomes}</span>{' '}
      <span class="quiet">{Object.keys(fields).join(', ')}</span>{' '}
      {isPage ? <a href={linkTo('/history', { id })}>{t.ofRecord}</a> : null}
      {conflict === undefined ? null : (
        <ul class="later">
          {conflict.later.map(({ seq, by, by_name: name = by, at, action, fields: changed }) => (
            <li key={seq}>
              {t.laterActions[action]} <When time={at} /> {t.by} {name}
              {changed.length === 0 ? '' : `: ${changed.join(', ')}`}
            </li>
          ))}
          {unshown > 0 ? <li>{t.moreChanges(unshown)}</li> : null}
        </ul>
      )}
    </li>
  );
}
