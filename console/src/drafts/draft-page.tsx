import { useRef } from 'preact/hooks';
import { call, may } from '../api/api.ts';
import { chooseDraft } from '../api/draft.ts';
import { useDraft } from '../api/use-draft.ts';
import { useLive } from '../api/live.ts';
import { useAction, useLoad } from '../components/loading.ts';
import { Busy, FailedScreen, Fault, ScreenHead, When } from '../components/ui.tsx';
import { linkTo } from '../route.ts';
import { texts } from '../texts.ts';
import { DraftChanges } from './draft-changes.tsx';
import { Compare } from './draft-compare.tsx';
import { Previews } from './draft-previews.tsx';
import { Publish } from './draft-publish.tsx';
import type { Draft } from './draft-record.ts';
import { Review } from './draft-review.tsx';
import { StateTag } from './state-tag.tsx';
import { UndoPublication } from './undo-publication.tsx';

const t = texts.drafts;

/** A draft: what it changes, how to see it, what others say, and how it gets live. */
export function DraftPage({ id, isCompared }: { id: string; isCompared: boolean }) {
  const live = useLive(['changes']);
  // The parts read what they show after the draft: one that has just ended has no report.
  const turns = useRef(0);
  const { data, error, reload } = useLoad(
    async (signal) => {
      const draft = await call<Draft>('draft.read', { draft: id }, { signal });
      turns.current += 1;
      return { ...draft, turn: turns.current };
    },
    [id],
    live,
  );
  const back = { href: '#/drafts', name: t.title };
  if (data === undefined) {
    if (error === undefined) return <Busy />;
    return <FailedScreen title={t.title} back={back} error={error} onRetry={reload} />;
  }
  const { name, comment, created, by, by_name: byName, state, submitted, turn } = data;
  return (
    <>
      <ScreenHead title={name} back={back} shown={['draft.read', { draft: id }]}>
        {state === 'open' ? <OpenTools draft={data} onDone={reload} /> : null}
      </ScreenHead>
      <p class="note draft-head">
        <StateTag state={state} /> {t.madeBy(byName ?? by)} <When time={created} />
        {state !== 'open' || submitted === undefined ? null : (
          <>
            {' · '}
            {t.submitted} <When time={submitted.at} />
          </>
        )}
      </p>
      {comment === undefined ? null : <p class="said">{comment}</p>}
      <Fault error={error} onRetry={reload} />
      {state === 'open' ? (
        <OpenDraft draft={data} {...{ turn, isCompared }} onDone={reload} />
      ) : null}
      {state === 'published' ? <Published draft={data} turn={turn} /> : null}
      <Review draft={data} onDone={reload} />
    </>
  );
}

function OpenTools({
  draft: { id, name, submitted },
  onDone,
}: {
  draft: Draft;
  onDone: () => void;
}) {
  const chosen = useDraft();
  const { error, isRunning, run } = useAction(onDone);
  const discard = async (): Promise<string> => {
    await call('draft.invalidate', { draft: id });
    if (chosen?.id === id) chooseDraft(undefined);
    return '';
  };
  const submit = async (): Promise<string> => {
    await call('draft.submit', { draft: id });
    return '';
  };
  return (
    <>
      <Fault error={error} />
      {may('draft') ? (
        <button
          type="button"
          class="quiet-button danger"
          disabled={isRunning}
          onClick={() => {
            if (confirm(t.discardConfirm(name))) void run(discard);
          }}
        >
          {t.discard}
        </button>
      ) : null}
      <button
        type="button"
        onClick={() => {
          chooseDraft(chosen?.id === id ? undefined : { id, name });
        }}
      >
        {chosen?.id === id ? t.leave : t.work}
      </button>
      {may('publish') ? (
        <button type="button" onClick={showPublish}>
          {t.toPublish}
        </button>
      ) : null}
      {may('draft') && !may('publish') && submitted === undefined ? (
        <button
          type="button"
          class="main-button"
          disabled={isRunning}
          onClick={() => void run(submit)}
        >
          {t.submit}
        </button>
      ) : null}
    </>
  );
}

/** Scrolls to the plan of a publication, which stands below all changes, and moves the focus there. */
function showPublish(): void {
  const panel = document.querySelector<HTMLElement>('.publish-panel');
  panel?.scrollIntoView();
  panel?.focus({ preventScroll: true });
}

interface OpenDraftProps {
  readonly draft: Draft;
  readonly turn: number;
  /** Whether the comparison begins at once. */
  readonly isCompared: boolean;
  readonly onDone: () => void;
}

function OpenDraft({ draft, turn, isCompared, onDone }: OpenDraftProps) {
  return (
    <>
      <DraftChanges id={draft.id} turn={turn} />
      <Compare id={draft.id} isAsked={isCompared} />
      <Previews draft={draft} onDone={onDone} />
      {may('publish') ? <Publish {...{ draft, turn, onDone }} /> : null}
    </>
  );
}

function Published({ draft: { id, closed = '', txn = '' }, turn }: { draft: Draft; turn: number }) {
  return (
    <section>
      <h2>{t.publishedTitle}</h2>
      <p>
        {t.publishedAt} <When time={closed} />
        {' · '}
        <a href={linkTo('/history', { txn })}>{t.publishedChanges}</a>
      </p>
      {may('publish') ? <UndoPublication id={id} txn={txn} turn={turn} /> : null}
    </section>
  );
}
