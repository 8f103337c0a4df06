import { useState } from 'preact/hooks';
import { call } from '../api/api.ts';
import { chooseDraft } from '../api/draft.ts';
import { useDraft } from '../api/use-draft.ts';
import { useAction, useLoad } from '../components/loading.ts';
import { Busy, CopyCurl, Fault } from '../components/ui.tsx';
import { texts } from '../texts.ts';
import { ChangeName, Versions } from './draft-changes.tsx';
import { ConflictChoice } from './conflict-choice.tsx';
import type { Draft, DraftedChange } from './draft-record.ts';
import { PublishTime, Scheduled } from './draft-schedule.tsx';

const t = texts.drafts;

type Resolution = 'draft' | 'live';

interface Report {
  readonly records: number;
  readonly inserted: number;
  readonly changed: number;
  readonly removed: number;
  readonly conflicts: readonly DraftedChange[];
  readonly conflicting: number;
  readonly needs_approval: boolean;
  readonly approved_by: readonly string[];
  readonly digest: string;
}

type Resolutions = Readonly<Record<string, Resolution>>;

interface PublishProps {
  readonly draft: Draft;
  /** Grows when the draft was read again. */
  readonly turn: number;
  readonly onDone: () => void;
}

/** The plan of a publication, the choices for its conflicts, and what carries it out. */
function usePublication({ draft: { id }, turn, onDone }: PublishProps) {
  const chosen = useDraft();
  const [resolve, setResolve] = useState<Resolutions>({});
  const [others, setOthers] = useState<Resolution>();
  const [at, setAt] = useState('');
  const report = useLoad(
    (signal) => call<Report>('draft.publish', { draft: id }, { signal }),
    [id],
    turn,
  );
  const action = useAction(onDone);
  const confirm = report.data?.digest;
  const v = {
    draft: id,
    resolve,
    ...(others !== undefined && { others }),
    ...(at !== '' && { at }),
  };
  const publish = async (): Promise<string> => {
    await call('draft.publish', { ...v, confirm });
    if (at !== '') {
      setAt('');
      return t.scheduledSaid;
    }
    if (chosen?.id === id) chooseDraft(undefined);
    return t.publishedTitle;
  };
  const approve = async (): Promise<string> => {
    await call('draft.approve', { draft: id, confirm });
    return t.approvedSaid;
  };
  return {
    ...{ report, v, resolve, setResolve, others, setOthers, at, setAt, publish, approve },
    ...action,
  };
}

/** The plan of a publication, with its conflicts; it approves or publishes what it shows. */
export function Publish(props: PublishProps) {
  const { report, v, error, said, isRunning, run, publish, approve, ...choices } =
    usePublication(props);
  const { draft, onDone } = props;
  const { at, setAt } = choices;
  const plan = report.data;
  const isBusy = isRunning || report.isLoading || plan?.records === 0;
  // A draft that waits for its time goes live as it was confirmed.
  const isUnapproved = plan?.needs_approval === true && plan.approved_by.length === 0;
  const isWaiting = draft.schedule !== undefined && draft.schedule.failed === undefined;
  return (
    <section class="panel publish-panel" tabIndex={-1} aria-label={t.publishTitle}>
      <div class="panel-head">
        <h2>{t.publishTitle}</h2>
        <CopyCurl shown={['draft.publish', v]} />
      </div>
      <Fault error={error ?? report.error} onRetry={report.reload} />
      {plan === undefined && report.error === undefined ? <Busy /> : null}
      <p role="status">{said}</p>
      <Scheduled draft={draft} onDone={onDone} />
      {plan === undefined ? null : (
        <>
          <p>{t.publishCounts(plan)}</p>
          {plan.conflicting === 0 ? null : <Conflicts plan={plan} {...choices} />}
          <Approval plan={plan} />
          {isWaiting || plan.records === 0 ? null : <PublishTime at={at} onAt={setAt} />}
          <div class="draft-actions">
            <button type="button" disabled={isBusy} onClick={() => void run(approve)}>
              {t.approve}
            </button>
            {isWaiting ? null : (
              <button
                type="button"
                class="main-button"
                disabled={isBusy || !isResolved(plan, choices) || (isUnapproved && at === '')}
                onClick={() => void run(publish)}
              >
                {at === '' ? t.publish(plan.records) : t.schedule(plan.records)}
              </button>
            )}
          </div>
        </>
      )}
    </section>
  );
}

interface Choices {
  readonly resolve: Resolutions;
  readonly others: Resolution | undefined;
}

/** Whether each conflict has a choice, also those that the report only counts. */
function isResolved({ conflicts, conflicting }: Report, { resolve, others }: Choices): boolean {
  if (others !== undefined) return true;
  const chosen = conflicts.filter(({ id }) => resolve[id] !== undefined);
  return chosen.length === conflicting;
}

function Approval({ plan }: { plan: Report }) {
  const { needs_approval: isNeeded, approved_by: by } = plan;
  if (by.length > 0) return <p class="note">{t.approvals(by.length)}</p>;
  return isNeeded ? <p class="note">{t.needsApproval}</p> : null;
}

/** Each conflict with its three versions, and the choice between them. */
function Conflicts({
  plan: { conflicts, conflicting },
  resolve,
  others,
  setResolve,
  setOthers,
}: Choices & {
  plan: Report;
  setResolve: (resolve: Resolutions) => void;
  setOthers: (others: Resolution) => void;
}) {
  const unlisted = conflicting - conflicts.length;
  return (
    <>
      <p class="bad-text">{t.conflictsLead(conflicting)}</p>
      {conflicting === 1 ? null : (
        <ConflictChoice
          name=""
          label={t.resolveOthers}
          choices={t.resolutions}
          chosen={others}
          onChoose={setOthers}
        />
      )}
      <ol class="draft-changes conflicts">
        {conflicts.map((change) => (
          <li key={`${change.family} ${change.id}`}>
            <p>
              <ChangeName change={change} /> <span class="tag">{t.becomes[change.becomes]}</span>
            </p>
            <Versions change={change} />
            <ConflictChoice
              name={change.id}
              label={t.resolve}
              choices={t.resolutions}
              chosen={resolve[change.id] ?? others}
              onChoose={(chosen) => {
                setResolve({ ...resolve, [change.id]: chosen });
              }}
            />
          </li>
        ))}
      </ol>
      {unlisted > 0 ? <p class="note">{t.unlisted(unlisted)}</p> : null}
    </>
  );
}
