import { call, may } from '../api/api.ts';
import { useAction, useLoad } from '../components/loading.ts';
import { Fault } from '../components/ui.tsx';
import { linkTo } from '../route.ts';
import { texts } from '../texts.ts';

const t = texts.drafts;

interface Report {
  readonly rows: number;
  readonly conflicting: number;
  readonly digest: string;
}

/** A part of a publication that an operation can revert. */
interface Part {
  readonly operation: string;
  readonly v: { readonly txn: string; readonly table?: string };
  readonly report: Report;
}

/** The parts of a publication that still apply, in the order of their undo: rows before tables. */
async function partsOf(txn: string, signal: AbortSignal): Promise<readonly Part[]> {
  const isAdmin = may('admin');
  const { rows: tables } = isAdmin
    ? await call<{ rows: readonly { name: string; host?: string }[] }>(
        'table.list',
        { limit: 1000 },
        { signal, isLive: true },
      )
    : { rows: [] };
  const own = tables.filter(({ host }) => host === undefined);
  const asked: readonly Omit<Part, 'report'>[] = [
    ...own.map(({ name }) => ({ operation: 'record.invalidate', v: { txn, table: name } })),
    ...(may('design') ? [{ operation: 'userinterface.invalidate', v: { txn } }] : []),
    ...(may('webhook') ? [{ operation: 'webhook.invalidate', v: { txn } }] : []),
    ...(isAdmin ? [{ operation: 'table.invalidate', v: { txn } }] : []),
  ];
  const parts: Part[] = [];
  for (const one of asked) {
    const report = await call<Report>(one.operation, one.v, { signal, isLive: true });
    if (report.rows > 0 || report.conflicting > 0) parts.push({ ...one, report });
  }
  return parts;
}

/** A button that undoes a publication, unless records were changed again since. */
export function UndoPublication({ txn, turn }: { txn: string; turn: number }) {
  const published = useLoad((signal) => partsOf(txn, signal), [txn], turn);
  const { error, said, isRunning, run } = useAction(published.reload);
  const parts = published.data ?? [];
  const undo = async (): Promise<string> => {
    for (const { operation, v, report } of parts) {
      await call(operation, { ...v, confirm: report.digest }, { isLive: true });
    }
    return t.undone;
  };
  const hasConflicts = parts.some(({ report }) => report.conflicting > 0);
  return (
    <>
      <Fault error={error ?? published.error} />
      <p role="status">{said}</p>
      {hasConflicts ? (
        <p class="bad-text">
          {t.undoConflicts} <a href={linkTo('/history', { txn })}>{t.publishedChanges}</a>
        </p>
      ) : null}
      {parts.length > 0 && !hasConflicts ? (
        <button type="button" disabled={isRunning} onClick={() => void run(undo)}>
          {t.undo}
        </button>
      ) : null}
    </>
  );
}
