import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { call, may } from '../api/api.ts';
import { chooseDraft } from '../api/draft.ts';
import { useLive } from '../api/live.ts';
import { useAction, usePages } from '../components/loading.ts';
import { ListFrame } from '../components/list.tsx';
import { Fault, Field, ScreenHead, When } from '../components/ui.tsx';
import { linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import type { Draft } from './draft-record.ts';
import { DraftPage } from './draft-page.tsx';
import { ScheduleLine } from './draft-schedule.tsx';
import { StateTag } from './state-tag.tsx';
import './drafts.css';

const t = texts.drafts;

/** The drafts of a state; one of them; or the form of a new one. */
export function Drafts({ route }: { route: Route }) {
  const [, , id] = route.path.split('/');
  if (id === 'new') return <NewDraft then={route.params.get('then') ?? '/pages'} />;
  if (id !== undefined && id !== '')
    return <DraftPage key={id} id={id} isCompared={route.params.has('compare')} />;
  const state = route.params.get('state') ?? 'open';
  return <DraftList key={state} state={state in t.states ? state : 'open'} />;
}

function DraftList({ state }: { state: string }) {
  const live = useLive(['changes']);
  const pages = usePages<Draft, string>(
    (after, limit) => call('draft.list', { state, limit, ...(after !== undefined && { after }) }),
    live,
  );
  return (
    <>
      <ScreenHead title={t.title} lead={t.lead} shown={['draft.list', { state }]}>
        {may('draft') ? (
          <a class="main-button" href="#/drafts/new">
            {t.fresh}
          </a>
        ) : null}
      </ScreenHead>
      <div class="segments" role="group" aria-label={t.stateLabel}>
        {Object.entries(t.states).map(([name, text]) => (
          <a
            key={name}
            href={linkTo('/drafts', { state: name })}
            aria-current={state === name ? 'true' : undefined}
          >
            {text}
          </a>
        ))}
      </div>
      <ListFrame pages={pages} empty={t.empty(state)} emptyHint={t.emptyHint} hasMore>
        <ul class="cards draft-cards">
          {pages.rows.map((draft) => (
            <DraftCard key={draft.id} draft={draft} />
          ))}
        </ul>
      </ListFrame>
    </>
  );
}

function DraftCard({ draft }: { draft: Draft }) {
  const { id, name, comment, created, by, by_name: byName, closed, submitted, approvals } = draft;
  return (
    <li>
      <h2>
        <a href={`#/drafts/${id}`}>{name}</a> <StateTag state={draft.state} />
      </h2>
      {comment === undefined ? null : <p>{comment}</p>}
      <p class="note">
        {t.madeBy(byName ?? by)} <When time={created} />
        {closed === undefined ? null : (
          <>
            {' · '}
            {t.states[draft.state]} <When time={closed} />
          </>
        )}
      </p>
      <ScheduleLine draft={draft} />
      {draft.state !== 'open' || submitted === undefined ? null : (
        <p class="note">
          {t.submitted} <When time={submitted.at} />
          {approvals === undefined ? '' : ` · ${t.approvals(approvals.length)}`}
        </p>
      )}
    </li>
  );
}

/** The form of a new draft; afterwards, the console works in it, and goes to a screen. */
function NewDraft({ then }: { then: string }) {
  const [name, setName] = useState('');
  const [comment, setComment] = useState('');
  const [vk] = useState(() => crypto.randomUUID());
  const { error, isRunning, run } = useAction(() => undefined);
  const v = { name, ...(comment !== '' && { comment }) };
  const nameField = useRef<HTMLInputElement>(null);
  // The switch of the navigation leads here: the next key is the first of the name.
  useLayoutEffect(() => {
    nameField.current?.focus();
  }, []);
  const make = async (): Promise<string> => {
    const made = await call<Draft>('draft.insert', v, { vk });
    chooseDraft({ id: made.id, name: made.name });
    location.hash = then;
    return '';
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void run(make);
      }}
    >
      <ScreenHead
        title={t.fresh}
        lead={t.freshLead}
        back={{ href: '#/drafts', name: t.title }}
        shown={['draft.insert', v]}
      >
        <button type="submit" class="main-button" disabled={isRunning || name === ''}>
          {t.make}
        </button>
      </ScreenHead>
      <Fault error={error} />
      {/* The screen goes away once the draft is made: nothing typed meanwhile must be lost. */}
      <fieldset class="draft-form" disabled={isRunning}>
        <Field label={t.name}>
          <input
            ref={nameField}
            type="text"
            required
            maxLength={128}
            value={name}
            onInput={({ currentTarget }) => {
              setName(currentTarget.value);
            }}
          />
        </Field>
        <Field label={t.comment}>
          <textarea
            rows={3}
            value={comment}
            onInput={({ currentTarget }) => {
              setComment(currentTarget.value);
            }}
          />
        </Field>
      </fieldset>
    </form>
  );
}
