import { useState } from 'preact/hooks';
import { call, type Json } from '../api/api.ts';
import { useAction, useLoad } from '../components/loading.ts';
import { Fault } from '../components/ui.tsx';
import { linkTo } from '../route.ts';
import { texts } from '../texts.ts';
import { ConflictChoice } from './conflict-choice.tsx';
import { ChangeName, FieldVersions } from './draft-changes.tsx';
import type { DraftedChange } from './draft-record.ts';

const t = texts.drafts;

type Resolution = 'undo' | 'live';

interface UndoneChange extends Pick<DraftedChange, 'family' | 'id' | 'label'> {
  readonly fields: Readonly<
    Record<string, { readonly published?: Json; readonly live: Json; readonly undone: Json }>
  >;
}

interface Report {
  readonly records: number;
  readonly conflicts: readonly UndoneChange[];
  readonly conflicting: number;
  readonly digest: string;
}

/** A button that undoes a publication, with a choice for each record that was changed since. */
export function UndoPublication({ id, txn, turn }: { id: string; txn: string; turn: number }) {
  const report = useLoad(
    (signal) => call<Report>('draft.undo', { draft: id }, { signal, isLive: true }),
    [id],
    turn,
  );
  const [resolve, setResolve] = useState<Readonly<Record<string, Resolution>>>({});
  const [others, setOthers] = useState<Resolution>();
  const { error, said, isRunning, run } = useAction(report.reload);
  const plan = report.data;
  const undo = async (): Promise<string> => {
    const v = { draft: id, resolve, ...(others !== undefined && { others }) };
    await call('draft.undo', { ...v, confirm: plan?.digest }, { isLive: true });
    return t.undone;
  };
  const { conflicts = [], conflicting = 0, records = 0 } = plan ?? {};
  const chosen = conflicts.filter((one) => resolve[one.id] !== undefined).length;
  const isResolved = others !== undefined || chosen === conflicting;
  return (
    <>
      <Fault error={error ?? report.error} />
      <p role="status">{said}</p>
      {conflicting === 0 ? null : (
        <p class="bad-text">
          {t.undoConflicts} <a href={linkTo('/history', { txn })}>{t.publishedChanges}</a>
        </p>
      )}
      {conflicting > 1 ? (
        <ConflictChoice
          name=""
          label={t.resolveOthers}
          choices={t.undoResolutions}
          chosen={others}
          onChoose={setOthers}
        />
      ) : null}
      <ol class="draft-changes conflicts">
        {conflicts.map((one) => (
          <li key={`${one.family} ${one.id}`}>
            <Conflict
              change={one}
              chosen={resolve[one.id] ?? others}
              onChoose={(choice) => {
                setResolve({ ...resolve, [one.id]: choice });
              }}
            />
          </li>
        ))}
      </ol>
      {records > 0 ? (
        <button
          type="button"
          disabled={isRunning || report.isLoading || !isResolved}
          onClick={() => void run(undo)}
        >
          {t.undo}
        </button>
      ) : null}
    </>
  );
}

/** A record that was changed since, with its three versions, and the choice between them. */
function Conflict({
  change,
  chosen,
  onChoose,
}: {
  change: UndoneChange;
  chosen: Resolution | undefined;
  onChoose: (chosen: Resolution) => void;
}) {
  return (
    <>
      <p>
        <ChangeName change={change} />
      </p>
      {Object.entries(change.fields).map(([name, { published = null, live, undone }]) => (
        <FieldVersions
          key={name}
          name={name}
          then={{ name: t.asPublished, value: published }}
          now={live}
          next={{ name: t.asUndone, value: undone }}
        />
      ))}
      <ConflictChoice
        name={change.id}
        label={t.undoResolve}
        choices={t.undoResolutions}
        chosen={chosen}
        onChoose={onChoose}
      />
    </>
  );
}
