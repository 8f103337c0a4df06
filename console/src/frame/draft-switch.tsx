import { useEffect } from 'preact/hooks';
import { ApiError, call, may } from '../api/api.ts';
import { chooseDraft } from '../api/draft.ts';
import { useDraft } from '../api/use-draft.ts';
import { useLive } from '../api/live.ts';
import type { ChosenDraft } from '../api/session.ts';
import { useLoad } from '../components/loading.ts';
import { goTo } from '../route.ts';
import { texts } from '../texts.ts';

const t = texts.drafts;
const fresh = 'new';
/** Drafts that the switch offers; the screen of drafts has all. */
const offeredMax = 100;

/** The switch between the live site and the open drafts; it can also make one. */
export function DraftSwitch() {
  const chosen = useDraft();
  const live = useLive(['changes']);
  const { data } = useLoad(
    (signal) =>
      call<{ rows: readonly ChosenDraft[] }>('draft.list', { limit: offeredMax }, { signal }),
    [chosen?.id],
    live,
  );
  const open = data?.rows ?? [];
  const isListed = chosen === undefined || open.some(({ id }) => id === chosen.id);
  const offered = isListed ? open : [chosen, ...open];
  if (offered.length === 0 && !may('draft')) return null;
  return (
    <label class="draft-switch">
      <span class="unseen">{t.switchLabel}</span>
      <select
        value={chosen?.id ?? ''}
        onChange={({ currentTarget }) => {
          const { value } = currentTarget;
          if (value === fresh) {
            currentTarget.value = chosen?.id ?? '';
            goTo('/drafts/new');
          } else chooseDraft(offered.find(({ id }) => id === value));
        }}
      >
        <option value="">{t.live}</option>
        {offered.map(({ id, name }) => (
          <option key={id} value={id}>
            {t.inDraft(name)}
          </option>
        ))}
        {may('draft') ? <option value={fresh}>{t.freshOption}</option> : null}
      </select>
    </label>
  );
}

/** The first parts of the paths of screens that show the live site, also in a draft. */
const liveScreens: ReadonlySet<string> = new Set(['', 'history', 'webhooks', 'operations']);

interface DraftState {
  readonly name: string;
  readonly state: keyof typeof t.states;
}

/** The band above all screens while the tab works in a draft; it leads out of it. */
export function DraftBand({ screen }: { screen: string }) {
  const chosen = useDraft();
  const live = useLive(['changes']);
  const { data, error } = useLoad(
    (signal) =>
      chosen === undefined
        ? Promise.resolve(undefined)
        : call<DraftState>('draft.read', { draft: chosen.id }, { signal }),
    [chosen?.id],
    live,
  );
  // Another tab or person may rename it.
  const name = data?.name;
  useEffect(() => {
    if (chosen === undefined || name === undefined || name === chosen.name) return;
    chooseDraft({ id: chosen.id, name });
  }, [name]);
  if (chosen === undefined) return null;
  const isGone = error instanceof ApiError && error.status === 404;
  const ended = isGone ? 'discarded' : data?.state === 'open' ? undefined : data?.state;
  return (
    <aside class={ended === undefined ? 'draft-band' : 'draft-band ended'} aria-label={t.band}>
      <p>
        <b>{t.inDraft(chosen.name)}</b> {sentence(ended, screen)}
      </p>
      <a class="quiet-button" href={`#/drafts/${chosen.id}`}>
        {t.openDraft}
      </a>
      <button
        type="button"
        class="quiet-button"
        onClick={() => {
          chooseDraft(undefined);
        }}
      >
        {t.leave}
      </button>
    </aside>
  );
}

function sentence(ended: DraftState['state'] | undefined, screen: string): string {
  if (ended !== undefined) return t.bandEnded(t.states[ended]);
  if (screen === 'drafts') return t.bandDrafts;
  return liveScreens.has(screen) ? t.bandLive : t.bandDraft;
}
