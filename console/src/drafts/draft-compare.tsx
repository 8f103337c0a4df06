import { useState } from 'preact/hooks';
import { call } from '../api/api.ts';
import { useAction } from '../components/loading.ts';
import { Busy, CopyCurl, Fault, Field } from '../components/ui.tsx';
import { texts } from '../texts.ts';

const t = texts.drafts;

interface Answer {
  readonly status: number;
  readonly source: string;
  readonly target?: string;
  readonly line?: string;
  readonly failure?: string;
}

interface Comparison {
  readonly compared: number;
  readonly differing: number;
  readonly rows: readonly {
    readonly url?: string;
    readonly key?: string;
    readonly differs: readonly string[];
    readonly headers?: readonly string[];
    readonly live: Answer;
    readonly draft: Answer;
  }[];
}

/** The URLs and breadcrumbs that answer otherwise in the draft. */
export function Compare({ id }: { id: string }) {
  const [urls, setUrls] = useState('');
  const [found, setFound] = useState<Comparison>();
  const { error, isRunning, run } = useAction(() => undefined);
  const v = { draft: id, ...(urls.trim() !== '' && { urls }) };
  const compare = async (): Promise<string> => {
    setFound(await call<Comparison>('draft.compare', v));
    return '';
  };
  return (
    <section>
      <div class="panel-head">
        <h2>{t.compareTitle}</h2>
        <CopyCurl shown={['draft.compare', v]} />
      </div>
      <p class="note">{t.compareLead}</p>
      <div class="draft-form">
        <Field label={t.compareUrls}>
          <textarea
            rows={2}
            class="mono"
            spellcheck={false}
            placeholder="/"
            value={urls}
            onInput={({ currentTarget }) => {
              setUrls(currentTarget.value);
            }}
          />
        </Field>
        <p>
          <button type="button" disabled={isRunning} onClick={() => void run(compare)}>
            {t.compare}
          </button>
        </p>
      </div>
      <Fault error={error} />
      {isRunning ? <Busy text={t.comparing} /> : null}
      {found === undefined ? null : (
        <>
          <p role="status">{t.compared(found.compared, found.differing)}</p>
          <ol class="draft-changes">
            {found.rows.map((row) => (
              <li key={row.url ?? `key ${row.key ?? ''}`}>
                <p>
                  <b>{row.url ?? row.key}</b>{' '}
                  {row.differs.map((what) => (
                    <span key={what} class="tag">
                      {what}
                    </span>
                  ))}{' '}
                  <span class="quiet">{row.headers?.join(', ')}</span>
                </p>
                <div class="diff-sides">
                  <Side name={t.now} answer={row.live} />
                  <Side name={t.drafted} answer={row.draft} />
                </div>
              </li>
            ))}
          </ol>
        </>
      )}
    </section>
  );
}

function Side({ name, answer }: { name: string; answer: Answer }) {
  const { status, source, target, line, failure } = answer;
  return (
    <div>
      <span class="quiet">{name}</span>
      <pre class="side" role="group" aria-label={name} tabIndex={0}>
        {[`${status} ${source}`, target && `→ ${target}`, line, failure]
          .filter((one) => one !== undefined && one !== '')
          .join('\n')}
      </pre>
    </div>
  );
}
