import { useState } from 'preact/hooks';
import { call, may } from '../api/api.ts';
import { useAction } from '../components/loading.ts';
import { Fault, When } from '../components/ui.tsx';
import { isTemplate } from '../pages/page-start.tsx';
import { texts } from '../texts.ts';
import type { Draft, DraftedChange } from './draft-record.ts';

const t = texts.drafts;
const daySeconds = 86_400;

/** A link that is shown once. */
interface Made {
  readonly id: string;
  readonly url: string;
}

/** The links with which others see the site as the draft has it. */
export function Previews({ draft, onDone }: { draft: Draft; onDone: () => void }) {
  const [days, setDays] = useState(7);
  const [made, setMade] = useState<Made>();
  const { error, isRunning, run } = useAction(onDone);
  const { id, previews = [] } = draft;
  const current = previews.filter(({ expires }) => Date.parse(expires) > Date.now());
  const make = async (): Promise<string> => {
    const link = await call<Made>('draft.preview', { draft: id, seconds: days * daySeconds });
    const page = await changedPage(id);
    const to = page === undefined ? '' : `?to=${encodeURIComponent(sentPath(page))}`;
    setMade({ ...link, url: link.url + to });
    return '';
  };
  const revoke = (preview: string) => async (): Promise<string> => {
    await call('draft.revoke', { draft: id, id: preview });
    if (preview === made?.id) setMade(undefined);
    return '';
  };
  return (
    <section>
      <h2>{t.previews}</h2>
      <p class="note">{t.previewsLead}</p>
      <Fault error={error} />
      {made === undefined ? null : <MadeLink key={made.id} url={made.url} />}
      <ul class="draft-links">
        {current.map((one) => (
          <li key={one.id}>
            <span>
              {t.previewUntil} <When time={one.expires} />
              {one.id === made?.id ? <span class="tag good">{t.newLink}</span> : null}
            </span>
            {may('draft') ? (
              <button
                type="button"
                class="quiet-button danger"
                disabled={isRunning}
                onClick={() => void run(revoke(one.id))}
              >
                {t.revoke}
              </button>
            ) : null}
          </li>
        ))}
      </ul>
      {may('draft') ? (
        <div class="draft-actions">
          <label class="inline-field">
            {t.days}
            <input
              type="number"
              min={1}
              max={90}
              value={days}
              onInput={({ currentTarget }) => {
                setDays(Math.min(90, Math.max(1, Math.trunc(currentTarget.valueAsNumber) || 1)));
              }}
            />
          </label>
          <button type="button" disabled={isRunning} onClick={() => void run(make)}>
            {t.makeLink}
          </button>
        </div>
      ) : null}
    </section>
  );
}

/** The first page that a draft changes, for its link to lead to; undefined if it changes none. */
async function changedPage(draft: string): Promise<string | undefined> {
  const { rows } = await call<{ rows: readonly DraftedChange[] }>('draft.changes', { draft });
  const page = rows.find(
    ({ family, label = '', becomes, fields }) =>
      family === 'userinterface' &&
      /^\/[^*]*$/.test(label) &&
      !isTemplate(label) &&
      becomes !== 'removed' &&
      fields.asset === undefined,
  );
  return page?.label;
}

/** A path as an address has it. */
function sentPath(path: string): string {
  return encodeURI(path).replaceAll('?', '%3F').replaceAll('#', '%23');
}

/** A link that was just made: no list has it later. */
function MadeLink({ url }: { url: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(url);
    setCopied(true);
  };
  return (
    <div class="made-link">
      <p>{t.linkOnce}</p>
      <code class="preview-link">{url}</code>
      <div class="draft-actions">
        <button type="button" onClick={() => void copy()}>
          <span aria-live="polite">{isCopied ? texts.copy.done : t.copyLink}</span>
        </button>
        <a class="quiet-button" href={url} target="_blank" rel="noopener noreferrer">
          {t.openLink}
        </a>
      </div>
    </div>
  );
}
