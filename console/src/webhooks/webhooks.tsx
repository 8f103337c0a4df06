import { useCallback, useState } from 'preact/hooks';
import { call, may } from '../api/api.ts';
import { useLive } from '../api/live.ts';
import { linkTo, type Route } from '../route.ts';
import { texts } from '../texts.ts';
import { useLoad } from '../components/loading.ts';
import { Busy, Fault, msText, ScreenHead, When } from '../components/ui.tsx';
import { EventForm } from './event-form.tsx';
import { NextBatch, StateTag, type Health } from './health.tsx';
import { WebhookForm } from './webhook-form.tsx';
import { WebhookView } from './webhook-view.tsx';
import './webhooks.css';

const t = texts.webhooks;

/** How often the state of hooks is read again. */

/** All webhooks, one of them with its deliveries, or a form. */
export function Webhooks({ route }: { route: Route }) {
  const [, , id, part] = route.path.split('/');
  if (id === undefined || id === '') return <HookList route={route} />;
  if (id === 'send') return <EventForm type={route.params.get('type') ?? ''} />;
  if (id === 'new') return <WebhookForm />;
  if (part === 'edit') return <WebhookForm key={id} id={id} />;
  return <WebhookView key={id} id={id} route={route} />;
}

function HookList({ route: { params } }: { route: Route }) {
  const state = params.get('state') ?? '';
  const [typed, setTyped] = useState('');
  const hooks = useLoad(
    (signal) =>
      call<{ rows: readonly Health[]; next: string | null }>('webhook.health', {}, { signal }),
    [],
    useLive(['deliveries', 'changes']),
  );
  const rows = hooks.data?.rows ?? [];
  const sought = typed.toLowerCase();
  const found = rows.filter(
    (one) =>
      (state === '' || one.state === state) &&
      `${one.name ?? ''} ${one.url} ${one.event.join(' ')}`.toLowerCase().includes(sought),
  );
  return (
    <>
      <ScreenHead title={t.title} lead={t.lead} shown={['webhook.health', {}]}>
        {may('event') ? (
          <a class="quiet-button" href="#/webhooks/send">
            {t.sendEvent}
          </a>
        ) : null}
        <a class="main-button" href="#/webhooks/new">
          {t.fresh}
        </a>
      </ScreenHead>
      <Fault error={hooks.error} onRetry={hooks.reload} />
      {hooks.data === undefined && hooks.error === undefined ? <Busy /> : null}
      {rows.length === 0 ? null : <Filters {...{ rows, state, typed }} onType={setTyped} />}
      {hooks.data !== undefined && rows.length === 0 ? <NoHooks /> : null}
      {rows.length > 0 && found.length === 0 ? <p class="note">{t.noneFound}</p> : null}
      <ul class="cards">
        {found.map((hook) => (
          <HookCard key={hook.id} hook={hook} />
        ))}
      </ul>
      <More first={hooks.data?.next ?? null} />
    </>
  );
}

function NoHooks() {
  return (
    <div class="empty">
      <h2>{t.empty}</h2>
      <p>{t.emptyHint}</p>
      <ol class="steps">
        {t.emptySteps.map((step) => (
          <li key={step}>{step}</li>
        ))}
      </ol>
      <p>
        <a class="main-button" href="#/webhooks/new">
          {t.fresh}
        </a>
      </p>
    </div>
  );
}

function Filters({
  rows,
  state,
  typed,
  onType,
}: {
  rows: readonly Health[];
  state: string;
  typed: string;
  onType: (typed: string) => void;
}) {
  return (
    <form
      class="filters"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
      }}
    >
      <input
        class="short"
        type="search"
        aria-label={t.search}
        placeholder={t.search}
        value={typed}
        onInput={({ currentTarget }) => {
          onType(currentTarget.value);
        }}
      />
      <div class="segments" role="group" aria-label={t.stateLabel}>
        <a href="#/webhooks" aria-current={state === '' ? 'true' : undefined}>
          {t.allStates} {rows.length}
        </a>
        {Object.entries(t.states).map(([name, text]) => {
          const count = rows.filter((one) => one.state === name).length;
          return count === 0 ? null : (
            <a
              key={name}
              href={linkTo('/webhooks', { state: name })}
              aria-current={state === name ? 'true' : undefined}
            >
              {text} {count}
            </a>
          );
        })}
      </div>
    </form>
  );
}

/** The hooks after the first page, a page at a time. */
function More({ first }: { first: string | null }) {
  const [rows, setRows] = useState<readonly Health[]>([]);
  const [after, setAfter] = useState<string | null | undefined>();
  const [error, setError] = useState<unknown>();
  const next = after === undefined ? first : after;
  const more = useCallback(async () => {
    try {
      const page = await call<{ rows: readonly Health[]; next: string | null }>('webhook.health', {
        after: next,
      });
      setRows((before) => [...before, ...page.rows]);
      setAfter(page.next);
    } catch (failure) {
      setError(failure);
    }
  }, [next]);
  return (
    <>
      <ul class="cards">
        {rows.map((hook) => (
          <HookCard key={hook.id} hook={hook} />
        ))}
      </ul>
      <Fault error={error} />
      {next === null ? null : (
        <button type="button" onClick={() => void more()}>
          {texts.states.more}
        </button>
      )}
    </>
  );
}

function HookCard({ hook }: { hook: Health }) {
  const { recent, last } = hook;
  const backlog = hook.queued + hook.waiting;
  return (
    <li class={`hook-card ${hook.state}`}>
      <h2>
        <a href={`#/webhooks/${hook.id}`}>{hook.name ?? hook.url}</a>{' '}
        <StateTag state={hook.state} />
      </h2>
      <p class="note">
        {hook.method} {hook.url}
      </p>
      <p class="note">{hook.event.join(', ')}</p>
      <dl class="figures">
        <div>
          <dt>{t.seq}</dt>
          <dd>{hook.seq.toLocaleString()}</dd>
        </div>
        <div>
          <dt>{t.backlog}</dt>
          <dd class={backlog > 0 ? 'bad-text' : ''}>{backlog.toLocaleString()}</dd>
        </div>
        <div>
          <dt>{t.delivered}</dt>
          <dd>
            {recent.attempts === 0 ? '–' : `${recent.attempts - recent.failed}/${recent.attempts}`}
          </dd>
        </div>
        <div>
          <dt>{t.median}</dt>
          <dd>{recent.attempts === 0 ? '–' : msText(recent.ms)}</dd>
        </div>
      </dl>
      <NextBatch health={hook} />
      {last === undefined ? null : (
        <p class="note">
          {t.lastAttempt} <When time={last.at} />
          {last.status === undefined ? '' : `, ${last.status}`}
          {last.error === undefined ? null : <span class="problem">{last.error}</span>}
        </p>
      )}
    </li>
  );
}
