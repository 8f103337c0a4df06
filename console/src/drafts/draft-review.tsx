import { useState } from 'preact/hooks';
import { call, may } from '../api/api.ts';
import { useAction } from '../components/loading.ts';
import { Fault, Field, When } from '../components/ui.tsx';
import { texts } from '../texts.ts';
import type { Draft, Note } from './draft-record.ts';

const t = texts.drafts;

/** What was said about a draft, and who approves it. */
export function Review({ draft, onDone }: { draft: Draft; onDone: () => void }) {
  const { id, state, submitted, comments = [], approvals = [] } = draft;
  const { error, isRunning, run } = useAction(onDone);
  const submit = async (): Promise<string> => {
    await call('draft.submit', { draft: id });
    return '';
  };
  return (
    <section>
      <h2>{t.review}</h2>
      <Fault error={error} />
      <ol class="draft-notes">
        {comments.map((one) => (
          <li key={one.at + one.text}>
            <Said note={one} />
            <p class="said">{one.text}</p>
          </li>
        ))}
        {submitted === undefined ? null : (
          <li>
            <Said note={submitted} /> <span class="tag">{t.submitted}</span>
          </li>
        )}
        {approvals.map((one) => (
          <li key={one.by}>
            <Said note={one} /> <span class="tag good">{t.approved}</span>
          </li>
        ))}
      </ol>
      {state === 'open' && may('draft') ? (
        <>
          <Comment id={id} onDone={onDone} />
          {submitted === undefined && !may('publish') ? null : (
            <button type="button" disabled={isRunning} onClick={() => void run(submit)}>
              {submitted === undefined ? t.submit : t.submitAgain}
            </button>
          )}
        </>
      ) : null}
    </section>
  );
}

function Said({ note: { at, by, by_name: name = by } }: { note: Note }) {
  return (
    <span class="note">
      {name} <When time={at} />
    </span>
  );
}

function Comment({ id, onDone }: { id: string; onDone: () => void }) {
  const [text, setText] = useState('');
  const { error, isRunning, run } = useAction(onDone);
  const send = async (): Promise<string> => {
    await call('draft.comment', { draft: id, text });
    // The next comment may have begun already.
    setText((now) => (now === text ? '' : now));
    return '';
  };
  return (
    <form
      class="draft-form"
      onSubmit={(event) => {
        event.preventDefault();
        void run(send);
      }}
    >
      <Field label={t.addComment}>
        <textarea
          rows={2}
          maxLength={4000}
          value={text}
          onInput={({ currentTarget }) => {
            setText(currentTarget.value);
          }}
        />
      </Field>
      <Fault error={error} />
      <p>
        <button type="submit" disabled={isRunning || text.trim() === ''}>
          {t.sendComment}
        </button>
      </p>
    </form>
  );
}
